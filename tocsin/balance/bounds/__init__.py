"""Below what no plan can come: bounds for the highest load, and for how many must move to reach one.

Each has its proof. ``lowest`` has those for the highest load that are quick to compute; ``spectral`` is the tightest,
and too slow for every plan, so it is apart.
"""

from tocsin.balance.bounds.lowest import lower_bound
from tocsin.balance.bounds.moves import moves_lower_bound

__all__ = ["lower_bound", "moves_lower_bound"]

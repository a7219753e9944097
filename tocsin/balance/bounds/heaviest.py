"""LB2: the heaviest subscriber, alone on the largest broker."""

from __future__ import annotations

from tocsin.balance.bounds.scope import capacities
from tocsin.balance.model.workload import Workload


def heaviest(workload: Workload) -> float:
    """2 max uᵢ ÷ the largest capacity.

    Proof: the broker of subscriber i sends it uᵢ, and receives at least what it sends it, once: uᵢ again.
    """
    return 2 * int(workload.own.max(initial=0)) / float(capacities(workload).max())

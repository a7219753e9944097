"""What matching is expected to reach on one core, by how many subscriptions there are."""

from __future__ import annotations

PUBLICATIONS = {100_000: 20_000.0}
"""Publications per second."""
NAIVE = {100_000: 50.0}
"""In multiples of the naive scan."""

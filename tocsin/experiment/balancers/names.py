"""What is compared, by name."""

from __future__ import annotations

from typing import Final

UNEQUAL: Final = "unequal brokers"
EQUAL: Final = "equal brokers"
SETUPS: Final = (UNEQUAL, EQUAL)

NONE: Final = "no balancing"
PADRES: Final = "PADRES"
TOCSIN: Final = "Tocsin"
MATCHING: Final = "Tocsin, matching counted"
BALANCERS: Final = (NONE, PADRES, TOCSIN, MATCHING)

BOUND: Final = "lower bound"


def cell_of(setup: str, what: str) -> str:
    """The name of a cell."""
    return f"{setup}: {what}"


def parts_of(cell: str) -> tuple[str, str]:
    """The set-up and what is done with it."""
    setup, _, what = cell.partition(": ")
    return setup, what

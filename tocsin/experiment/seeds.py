"""Cells that are measured with several seeds. Those of the first bear no number, so a run can grow by more seeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_BETWEEN: Final = ", seed "


def with_seeds(cells: Iterable[str], first: int, count: int) -> list[str]:
    """All cells with the first seed, then all with the next, and so on."""
    named = list(cells)
    return [*named, *(f"{cell}{_BETWEEN}{first + more}" for more in range(1, count) for cell in named)]


def split(cell: str, first: int) -> tuple[str, int]:
    """What a cell is called without its seed, and the seed."""
    name, between, seed = cell.rpartition(_BETWEEN)
    return (name, int(seed)) if between else (cell, first)

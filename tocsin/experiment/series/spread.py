"""A figure over several seeds: its median, and from where to where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Spread(NamedTuple):
    """What a figure is in the middle, at the least and at the most."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        return cls(median(values), min(values), max(values))

    def in_words(self, form: str = ".2f") -> str:
        """In words: the median, and in brackets the others if they differ from it."""
        middle, lowest, highest = (f"{value:{form}}" for value in self)
        return middle if lowest == middle == highest else f"{middle} ({lowest}–{highest})"


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """Values in words; of none, nothing."""
    return Spread.of(values).in_words(form) if values else ""

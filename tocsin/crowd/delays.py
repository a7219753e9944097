"""How long things took, in hundredths of a second, so that it can be counted, sent, and added up over processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

_PER_SECOND: Final = 100

Delays = dict[int, int]
"""How many took so many hundredths of a second."""


class Stopwatch:
    """Counts delays."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """One more; less than nothing, as by rounding, is nothing."""
        self._counts[max(round(seconds * _PER_SECOND), 0)] += 1

    def delays(self) -> Delays:
        """All of them."""
        return dict(self._counts)


def within(delays: Mapping[int, int], part: float) -> float:
    """The seconds within which this part of them was done, 1 for all; 0 when there were none."""
    wanted, seen = part * sum(delays.values()), 0
    for hundredths in sorted(delays):
        seen += delays[hundredths]
        if seen >= wanted:
            return hundredths / _PER_SECOND
    return 0.0

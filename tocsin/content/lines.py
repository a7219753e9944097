"""Strings as numbers in the same order, so that pieces of a line of strings can be compared as arrays of numbers.

Only the strings at which a piece begins or ends have a number of their own, a multiple of nothing in particular but far
enough from the next: the cut before it is one less, the cut after it one more, and a string between two of them gets a
number between theirs. When there is no room left between two, all are numbered anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Final

import numpy as np
import numpy.typing as npt

from tocsin.content.constraint import LAST, START, Cut

Floats = npt.NDArray[np.float64]

_SPAN: Final = 2.0**52
_LEAST_GAP: Final = 8.0


class StringLine:
    """The strings of one attribute that filters compare with, in order."""

    def __init__(self) -> None:
        self._strings: list[str] = []
        self._numbers: list[float] = []
        self._uses: Counter[str] = Counter()

    def place(self, value: str) -> float:
        """A number for any string."""
        at = bisect_left(self._strings, value)
        if at < len(self._strings) and self._strings[at] == value:
            return self._numbers[at]
        return self._between(at)

    def low(self, cut: Cut) -> float:
        """The least number right of a cut; at a string that is not held, the number of that."""
        return -np.inf if cut == START else self.place(cut[1]) + (1.0 if cut[2] and cut[1] in self._uses else 0.0)

    def high(self, cut: Cut) -> float:
        """The greatest number left of a cut; at a string that is not held, the number of that."""
        return np.inf if cut == LAST else self.place(cut[1]) - (1.0 if not cut[2] and cut[1] in self._uses else 0.0)

    def hold(self, string: str) -> tuple[Floats, Floats] | None:
        """Gives a string a number, until it is released as often. If all were numbered anew for it, returns their
        numbers before and after, both rising."""
        self._uses[string] += 1
        if self._uses[string] > 1:
            return None
        at = bisect_left(self._strings, string)
        low, high = self._around(at)
        renumbered = None
        if high - low < 2 * _LEAST_GAP:
            renumbered = self._renumber()
            low, high = self._around(at)
        self._strings.insert(at, string)
        self._numbers.insert(at, float(np.floor((low + high) / 2)))
        return renumbered

    def release(self, string: str) -> None:
        """Takes a use back."""
        self._uses[string] -= 1
        if not self._uses[string]:
            del self._uses[string]
            at = bisect_left(self._strings, string)
            del self._strings[at], self._numbers[at]

    def _around(self, at: int) -> tuple[float, float]:
        """The numbers on both sides of a gap."""
        low = self._numbers[at - 1] if at else -_SPAN
        return low, self._numbers[at] if at < len(self._numbers) else _SPAN

    def _between(self, at: int) -> float:
        low, high = self._around(at)
        return float(np.floor((low + high) / 2))

    def _renumber(self) -> tuple[Floats, Floats]:
        before = np.array(self._numbers)
        after = np.floor(np.linspace(-_SPAN, _SPAN, len(before) + 2)[1:-1])
        self._numbers = after.tolist()
        return before, after


def renumber(bounds: Floats, before: Floats, after: Floats) -> Floats:
    """Bounds by the numbers of before, each at most one away from one of them, by those of after."""
    at = np.searchsorted(before, bounds - 1.5)
    finite = np.isfinite(bounds)
    moved = bounds.copy()
    moved[finite] += after[at[finite]] - before[at[finite]]
    return moved

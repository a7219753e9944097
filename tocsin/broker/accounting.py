"""How many bytes per second come in and go out, as moving averages: the paper's I and O."""

from __future__ import annotations

from collections.abc import Container
from math import exp
from typing import Final

LEAST: Final = 0.01
"""A lower rate counts as none."""
TOLERANCE: Final = 0.1
"""A rate that differs by no more than this part is not said again."""


class Meter:
    """Bytes per second, each byte's weight fading with a time constant of ``span`` seconds."""

    __slots__ = ("_at", "_rate", "_span")

    def __init__(self, span: float) -> None:
        self._span, self._rate, self._at = span, 0.0, 0.0

    def add(self, now: float, count: float) -> None:
        """Counts bytes."""
        self._rate, self._at = self.rate(now) + count / self._span, now

    def rate(self, now: float) -> float:
        """Bytes per second, as of now."""
        return self._rate * exp((self._at - now) / self._span) if self._rate else 0.0


class Account:
    """What one BE subscription, or all of them, brings in (I) and sends out (O)."""

    __slots__ = ("incoming", "outgoing")

    def __init__(self, span: float) -> None:
        self.incoming, self.outgoing = Meter(span), Meter(span)


class Changes:
    """Which rates differ enough from what was last said of them to be said again."""

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self._tolerance = tolerance
        self._said: dict[int, float] = {}

    def take(self, rates: dict[int, float], held: Container[int]) -> dict[int, float]:
        """Those to say now; one that has faded is said to be 0. Of those no longer ``held`` nothing is said: other
        brokers may hold them, and know better."""
        for be in [be for be in self._said if be not in held]:
            del self._said[be]
        faded = {be: 0.0 for be in self._said if be not in rates}
        changed = faded | {be: self._rounded(rate) for be, rate in rates.items() if self._differs(be, rate)}
        for be, rate in changed.items():
            if rate:
                self._said[be] = rate
            else:
                self._said.pop(be, None)
        return changed

    def forget(self) -> None:
        """Everything is to be said again."""
        self._said.clear()

    def _rounded(self, rate: float) -> float:
        return rate if rate >= LEAST else 0.0

    def _differs(self, be: int, rate: float) -> bool:
        said = self._said.get(be, 0.0)
        return abs(self._rounded(rate) - said) > self._tolerance * said

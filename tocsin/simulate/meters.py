"""The rates of a broker's lines as arrays: the same figures as those of its accounts, for all lines at once."""

from __future__ import annotations

import numpy as np

from tocsin.balance.workload import Int64s
from tocsin.broker.accounting import LEAST, TOLERANCE
from tocsin.broker.holdings import Holdings
from tocsin.broker.reports import Rates


class Meters(Rates):
    """Bytes per second of each BE subscription, by its number.

    A line that is given up and taken again between two reports goes on from the rate it had.
    """

    def __init__(self, holdings: Holdings, span: float) -> None:
        super().__init__(holdings)
        self._span = span
        self._rates, self._at, self._said = np.zeros(1), np.zeros(1), np.zeros(1)

    def add(self, now: float, bes: Int64s, sizes: Int64s) -> None:
        """Counts bytes of these lines, each of which is there once."""
        self._hold(int(bes.max(initial=0)) + 1)
        faded = self._rates[bes] * np.exp((self._at[bes] - now) / self._span)
        self._rates[bes], self._at[bes] = faded + sizes / self._span, now

    def changes(self, now: float) -> dict[int, float]:
        """Those that differ from what was last said of them."""
        lines = self._holdings.lines
        bes = np.fromiter(lines, np.int64, len(lines))
        self._hold(int(bes.max(initial=0)) + 1)
        gone = np.ones(len(self._rates), bool)
        gone[bes] = False
        self._rates[gone] = self._said[gone] = 0.0
        rates = self._rates * np.exp((self._at - now) / self._span)
        rates[rates < LEAST] = 0.0
        changed = np.flatnonzero(np.abs(rates - self._said) > TOLERANCE * self._said)
        self._said[changed] = rates[changed]
        return dict(zip(changed.tolist(), rates[changed].tolist(), strict=True))

    def forget(self) -> None:
        """Everything is to be said again."""
        self._said[:] = 0.0

    def _hold(self, size: int) -> None:
        """Makes room for so many."""
        if missing := max(0, size - len(self._rates)):
            more = np.zeros(missing + size)
            self._rates, self._at, self._said = (
                np.concatenate([each, more]) for each in (self._rates, self._at, self._said)
            )

"""Who has no load yet: subscribers that hold nothing, or nothing of which a rate was measured.

A placement must count them, since no load tells of them: those who come together would all find the same brokers best.
Who is suspended is not among them: nothing is to be expected of them soon.
"""

from __future__ import annotations

import numpy as np

from tocsin.balance.live.numbering import Numbering, grow
from tocsin.balance.live.rows import RowPool
from tocsin.balance.model.loads import any_load
from tocsin.balance.model.workload import Bools, Int32s, Int64s


class Idle:
    """How many subscribers without load each broker has, and how many that are suspended, kept up to date.

    Each change costs as much as what it touches; only when a rate begins or ends, or something is no longer held, all
    are counted again, the next time it is asked.
    """

    def __init__(self, subscribers: int = 0) -> None:
        self._loaded: Bools = np.zeros(0, np.bool_)
        self._suspended: Bools = np.zeros(subscribers, np.bool_)
        self._counts: Int64s = np.zeros(0, np.int64)
        self._resting: Int64s = np.zeros(0, np.int64)
        self._stale = True

    def come(self, subscriber: int, broker: int) -> None:
        """Somebody has come, who holds nothing yet."""
        self._loaded = grow(self._loaded, subscriber + 1)
        self._suspended = grow(self._suspended, subscriber + 1)
        self._counts = grow(self._counts, broker + 1)
        self._loaded[subscriber] = self._suspended[subscriber] = False
        self._counts[broker] += 1

    def go(self, subscriber: int, broker: int) -> None:
        """Somebody has left."""
        if self._suspended[subscriber]:
            self._resting[broker] -= 1
        elif not self._stale and not self._loaded[subscriber]:
            self._counts[broker] -= 1

    def carry(self, who: Int64s, sources: Int32s, destinations: Int32s) -> None:
        """These have moved."""
        top = int(destinations.max(initial=-1)) + 1
        suspended = self._suspended[who]
        if suspended.any():
            self._resting = _shift_counts(grow(self._resting, top), sources[suspended], destinations[suspended])
        if self._stale:
            return
        idle = ~self._loaded[who] & ~suspended
        self._counts = _shift_counts(grow(self._counts, top), sources[idle], destinations[idle])

    def enter(self, who: Int64s, brokers: Int32s, rates: Int64s) -> None:
        """``who[n]``, on ``brokers[n]``, holds something more, of the rate ``rates[n]``."""
        if self._stale:
            return
        turned = (rates > 0) & ~self._loaded[who]
        first, at = np.unique(who[turned], return_index=True)
        self._loaded[first] = True
        np.subtract.at(self._counts, brokers[turned][at], 1)

    def suspend(self, who: Int64s, brokers: Int32s) -> None:
        """``who[n]``, on ``brokers[n]``, holds nothing from now on, and is not counted."""
        self._resting = grow(self._resting, int(brokers.max(initial=-1)) + 1)
        np.add.at(self._resting, brokers, 1)
        self._suspended[who] = True
        if not self._stale:
            np.subtract.at(self._counts, brokers[~self._loaded[who]], 1)
            self._loaded[who] = False

    def resume(self, subscriber: int, broker: int) -> None:
        """Somebody is counted again, who holds nothing yet."""
        self._suspended[subscriber] = False
        self._resting[broker] -= 1
        if not self._stale:
            self._counts[broker] += 1

    def which_suspended(self, who: Int64s) -> Bools:
        """Which of these are suspended."""
        return self._suspended[who]

    def recount(self) -> None:
        """Rates have begun or ended, or something is no longer held: it is counted again when next asked."""
        self._stale = True

    def counts(self, top: int, subscribers: Numbering, assignment: Int32s, rows: RowPool, rates: Int64s) -> Int64s:
        """Of each broker below ``top``."""
        if self._stale:
            self._loaded = any_load(rates, rows.start, rows.length, rows.pool)
            who = subscribers.numbers()
            idle = who[~self._loaded[who] & ~self._suspended[who]]
            self._counts = np.bincount(assignment[idle], minlength=top).astype(np.int64)
            self._stale = False
        self._counts = grow(self._counts, top)
        return self._counts[:top].copy()

    def resting(self, top: int) -> Int64s:
        """How many are suspended on each broker below ``top``."""
        self._resting = grow(self._resting, top)
        return self._resting[:top].copy()


def _shift_counts(counts: Int64s, sources: Int32s, destinations: Int32s) -> Int64s:
    """Counts after each has gone from its source to its destination."""
    np.subtract.at(counts, sources, 1)
    np.add.at(counts, destinations, 1)
    return counts

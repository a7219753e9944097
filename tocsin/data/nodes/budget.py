"""Which channels a node matches with a batch, so that the batch need not wait for long. Pure: told what happened.

Those that have fitted into the time lately, in the order of their names, so that all nodes choose about the same: a
channel counts only if all have matched it. One that is slow, or failed, is left out for a while that doubles, so that a
batch waits for it seldom.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_REST_SECONDS: Final = 5.0
_LONGEST_REST_SECONDS: Final = 300.0
# Of the time that there is; what is measured varies.
_USED: Final = 0.5
# Of the same, what one channel may have: the others of the feed wait for it, too.
_ALONE: Final = 0.25
_NEW: Final = 0.3


class MatchingBudget:
    """What is known of channels' matching at this node.

    Args:
        seconds: how long a batch waits.
        workers: how many are matched at the same time.
    """

    def __init__(self, seconds: float, workers: int) -> None:
        self._budget, self._longest = seconds * workers * _USED, seconds * _ALONE
        self._seconds: dict[str, float] = {}
        self._rests: dict[str, float] = {}
        self._rested: dict[str, float] = {}

    def choose(self, names: Iterable[str], now: float) -> list[str]:
        """Those to be begun with a batch."""
        chosen, used = list[str](), 0.0
        for name in sorted(names):
            if now < self._rests.get(name, 0.0):
                continue
            used += self._seconds.get(name, 0.0)
            if used > self._budget:
                break
            chosen.append(name)
        return chosen

    def took(self, name: str, seconds: float, now: float) -> None:
        """A channel was matched in time. If it is slow all the same, it rests like one that failed."""
        known = _NEW * seconds + (1 - _NEW) * self._seconds.get(name, seconds)
        if known > self._longest:
            self.failed(name, now)
            return
        self._seconds[name] = known
        self._rested.pop(name, None)

    def failed(self, name: str, now: float) -> None:
        """It was not, or has found too much, or nothing could come of it."""
        rest = min(2 * self._rested.get(name, _REST_SECONDS / 2), _LONGEST_REST_SECONDS)
        self._rested[name], self._rests[name] = rest, now + rest
        self._seconds.pop(name, None)

    def keep(self, names: Iterable[str]) -> None:
        """There are no others any more."""
        kept = set(names)
        for known in (self._seconds, self._rests, self._rested):
            for name in known.keys() - kept:
                del known[name]

"""What is remembered of a channel's failures: how often it failed, whom it served, and who was blamed how often. Pure.

A subscription that fails with some records only loses these. If that happens three times without any result in
between, it is its parameters that are wrong, more likely than the records, and it is set aside.

Who was blamed is *on trial* until it has had a result, and so is, for a while after somebody was blamed, whoever
subscribes: they are tried by themselves before they are executed with all others.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Final

from tocsin.data.ids import NONE, IdArray, ascending, common, together
from tocsin.data.subscriptions import Segments
from tocsin.data.subscriptions.segments import added_ids

_MOST: Final = 3


class Strikes:
    """Of all channels; in memory, for whoever is to blame will be found again."""

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._known: dict[str, int] = {}
        self._strikes: dict[str, Counter[int]] = {}
        self._suspects: dict[str, set[int]] = {}
        self._wary: dict[str, float] = {}
        self._lock = threading.Lock()

    def failed(self, channel: str) -> bool:
        """An execution failed; whether to find out who is to blame.

        Not at the first failure, which may go by itself, and ever less often while nobody is found.
        """
        with self._lock:
            self._failures[channel] += 1
            before = self._failures[channel] - 1
        return before > 0 and before & (before - 1) == 0

    def progressed(self, channel: str) -> None:
        """Some were found, though not all: look for the others at the next failure."""
        with self._lock:
            self._failures[channel] = 1

    def served(self, channel: str, bes: IdArray, subscriptions: Segments) -> None:
        """An execution worked for these subscriptions, and gave these some results."""
        with self._lock:
            self._failures.pop(channel, None)
            self._known[channel] = _newest(subscriptions)
            strikes, suspects = self._strikes.get(channel), self._suspects.get(channel)
            if strikes:
                for be in set(bes.tolist()) & set(strikes):
                    del strikes[be]
            if suspects:
                suspects.difference_update(bes.tolist())

    def newest_served(self, channel: str) -> int:
        """Subscriptions up to this one have been executed before."""
        return self._known.get(channel, 0)

    def strike(self, channel: str, bes: Iterable[int]) -> set[int]:
        """These fail with some records; which of them too often."""
        with self._lock:
            strikes = self._strikes.setdefault(channel, Counter())
            strikes.update(bes)
            # One strike is left, so that who is tried again and fails is set aside at once.
            worn = {be for be, count in strikes.items() if count >= _MOST}
            strikes.update(dict.fromkeys(worn, -1))
            return worn

    def suspect(self, channel: str, bes: Iterable[int], until: float) -> None:
        """These fail, or may do; who subscribes is on trial ``until`` then."""
        with self._lock:
            self._suspects.setdefault(channel, set()).update(bes)
            self._wary[channel] = until

    def is_wary(self, channel: str, now: float) -> bool:
        """Whether anybody can be on trial."""
        with self._lock:
            return bool(self._suspects.get(channel)) or now < self._wary.get(channel, 0.0)

    def on_trial(self, channel: str, ids: IdArray, now: float) -> IdArray:
        """Which of all who are subscribed are to be tried by themselves."""
        with self._lock:
            suspects = common(ascending(sorted(self._suspects.get(channel, ()))), ids)
            strikes = self._strikes.get(channel, Counter())
            # Of those who have given up what they had, nothing need be known.
            self._suspects[channel] = set(suspects.tolist())
            for be in set(strikes) - self._suspects[channel]:
                del strikes[be]
            newcomers = ids[ids > self._known.get(channel, 0)] if now < self._wary.get(channel, 0.0) else NONE
            return together(suspects, newcomers)

    def forget(self, channel: str) -> None:
        """A channel that is no more, or another one now."""
        with self._lock:
            for each in (self._failures, self._known, self._strikes, self._suspects, self._wary):
                each.pop(channel, None)


def _newest(subscriptions: Segments) -> int:
    added = added_ids(subscriptions.added)
    base = subscriptions.held.last if subscriptions.held is not None else 0
    return max(base, int(added[-1]) if len(added) else 0)

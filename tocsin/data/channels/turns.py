"""Whose turn it is to be executed, when there are more channels than may run at a time. Pure: told what happened.

Two lanes, each first come, first served. A channel whose executions take long waits in the slow lane, where only a part
as many run at a time; so slow channels delay each other, and not those that are quick. An execution that turns out to
be slow while it runs moves over, and makes room for the next quick one.
"""

from __future__ import annotations

from collections import deque


class Turns:
    """The channels that wait and that run. Not thread-safe: the runner owns it.

    Args:
        workers: quick executions at a time; half as many slow ones, but at least one, may run besides.
    """

    def __init__(self, workers: int) -> None:
        self._most = {False: workers, True: max(1, workers // 2)}
        self._waiting: dict[bool, deque[str]] = {False: deque(), True: deque()}
        self._running: dict[bool, set[str]] = {False: set(), True: set()}
        self._slow: set[str] = set()

    def enter(self, name: str) -> None:
        """A channel is to be executed."""
        self._waiting[name in self._slow].append(name)

    @property
    def room(self) -> int:
        """How many quick channels could begin at once."""
        return max(self._most[False] - len(self._waiting[False]) - len(self._running[False]), 0)

    def is_slow(self, name: str) -> bool:
        """Whether a channel's executions take long."""
        return name in self._slow

    def next(self) -> str | None:
        """The channel that may begin now, if one may."""
        for slow in (False, True):
            if self._waiting[slow] and len(self._running[slow]) < self._most[slow]:
                name = self._waiting[slow].popleft()
                self._running[slow].add(name)
                return name
        return None

    def slowed(self, name: str) -> None:
        """A channel's execution takes long; it does not keep the quick ones waiting any more."""
        self._slow.add(name)
        if name in self._running[False]:
            self._running[False].discard(name)
            self._running[True].add(name)

    def left(self, name: str, quick: bool) -> None:
        """A channel's execution has ended, quickly or not."""
        for running in self._running.values():
            running.discard(name)
        if quick:
            self._slow.discard(name)

    def forget(self, name: str) -> None:
        """A channel that is no more, or another one now."""
        self._slow.discard(name)

"""Deadlines: those that all lie the same time ahead, and so come in the order in which they were set, and others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Each key has at most one deadline, ``delay`` seconds after it was set. ``soonest`` is the next, or infinite."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        # Of a dict the first is slow to find after many that were taken out.
        self._at: OrderedDict[K, float] = OrderedDict()
        self.soonest = inf

    def set(self, now: float, key: K) -> None:
        """Starts a key's time (again)."""
        self.drop(key)
        self._at[key] = at = now + self._delay
        self.soonest = min(self.soonest, at)

    def drop(self, key: K) -> None:
        """Forgets a key, if it is known."""
        if self._at.pop(key, None) is not None:
            self.soonest = next(iter(self._at.values()), inf)

    def first(self) -> K | None:
        """The key whose time comes next, which has waited for longest."""
        return next(iter(self._at), None)

    def due(self, now: float) -> Iterator[K]:
        """Takes out those whose time has come."""
        while self.soonest <= now:
            key = next(iter(self._at))
            self.drop(key)
            yield key


class Appointments(Generic[K]):
    """Each key has at most one time, any time, and may be set once. ``soonest`` is the next, or infinite."""

    def __init__(self) -> None:
        self._at: dict[K, float] = {}
        # What was dropped stays in here until its time comes, or until it is half of all.
        self._order: list[tuple[float, K]] = []
        self.soonest = inf

    def set(self, at: float, key: K) -> None:
        """Notes a key's time, unless that never comes."""
        if at < inf:
            self._at[key] = at
            heappush(self._order, (at, key))
            self.soonest = self._order[0][0]

    def drop(self, key: K) -> None:
        """Forgets a key, if it is known."""
        if self._at.pop(key, None) is not None and len(self._order) > 2 * len(self._at):
            self._order = [(at, each) for each, at in self._at.items()]
            heapify(self._order)
            self.soonest = self._order[0][0] if self._order else inf

    def due(self, now: float) -> Iterator[K]:
        """Takes out those whose time has come."""
        while self.soonest <= now:
            _, key = heappop(self._order)
            self.soonest = self._order[0][0] if self._order else inf
            if self._at.pop(key, None) is not None:
                yield key

"""Deadlines that all lie the same time ahead, so that they come in the order in which they were set."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Each key has at most one deadline, ``delay`` seconds after it was set. ``soonest`` is the next, or infinite."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._at: dict[K, float] = {}
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

    def due(self, now: float) -> Iterator[K]:
        """Takes out those whose time has come."""
        while self.soonest <= now:
            key = next(iter(self._at))
            self.drop(key)
            yield key

"""Deadlines that all lie the same time ahead, so that they come in the order in which they were set."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Each key has at most one deadline, ``delay`` seconds after it was set."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._at: dict[K, float] = {}

    def set(self, now: float, key: K) -> None:
        """Starts a key's time (again)."""
        self._at.pop(key, None)
        self._at[key] = now + self._delay

    def drop(self, key: K) -> None:
        """Forgets a key, if it is known."""
        self._at.pop(key, None)

    def due(self, now: float) -> Iterator[K]:
        """Takes out those whose time has come."""
        while self._at:
            key, at = next(iter(self._at.items()))
            if at > now:
                return
            del self._at[key]
            yield key

    def wake(self) -> float | None:
        """When the next one is due."""
        return next(iter(self._at.values()), None)

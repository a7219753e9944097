"""Virtual time: what is to happen, in order."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

START: Final = 1_700_000_000.0
_TOO_MANY: Final = 1_000_000


class VirtualClock:
    """Calls what is due, in the order of time; of what is due at the same moment, what was set first.

    What can go wrong: calls set each other at the same moment without end (a RuntimeError says so).
    """

    def __init__(self, now: float = START) -> None:
        self.now = now
        self._calls: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()

    def at(self, when: float, call: Callable[..., None], *arguments: Any) -> None:
        """Has something called at a time; one that is past means at once, after what is due already."""
        heappush(self._calls, (when if when > self.now else self.now, next(self._numbers), call, arguments))

    def after(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        """Has something called after a while."""
        heappush(self._calls, (self.now + seconds, next(self._numbers), call, arguments))

    @property
    def due(self) -> float | None:
        """When the next call is due; None if there is none."""
        return self._calls[0][0] if self._calls else None

    def run(self, until: float) -> None:
        """Lets time pass up to a moment."""
        calls, at_once = self._calls, 0
        while calls and calls[0][0] <= until:
            when, _, call, arguments = heappop(calls)
            at_once = at_once + 1 if when == self.now else 0
            if at_once > _TOO_MANY:
                raise RuntimeError(f"time stands still at {when}: the cores talk without end")
            self.now = when
            call(*arguments)
        self.now = max(self.now, until)

    def pass_time(self, seconds: float) -> None:
        """Lets so much time pass."""
        self.run(self.now + seconds)

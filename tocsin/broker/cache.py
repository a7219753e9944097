"""The newest results of each BE subscription, for those who come back or come late.

Of a BE subscription it has everything that was found after ``since`` up to its channel's level: results come in order,
as they are pulled, and the oldest leave first. Which BE subscription loses one when space is short is the policy's
choice.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

OVERHEAD: Final = 100  # what a kept result takes beyond its bytes, about


class EvictionPolicy(Protocol):
    """Chooses what leaves. It is told of every result put, and chooses among BE subscriptions that have one."""

    def put(self, now: float, be: int) -> None:
        """A result was kept for the BE subscription."""
        ...

    def used(self, be: int) -> None:
        """Somebody was served with what is kept for the BE subscription."""
        ...

    def victim(self) -> int | None:
        """The BE subscription to lose its oldest result; it is asked again if that BE subscription has none any
        more."""
        ...

    def overdue(self, now: float) -> int | None:
        """A BE subscription whose oldest result is to leave even though there is space."""
        ...

    def closed(self, be: int) -> None:
        """Nothing is kept for the BE subscription any more."""
        ...


class LeastRecentlyUsed:
    """Takes from the BE subscription that nobody has been given anything of for the longest time."""

    def __init__(self) -> None:
        self._order: OrderedDict[int, int] = OrderedDict()

    def put(self, now: float, be: int) -> None:  # noqa: ARG002
        self._order[be] = self._order.get(be, 0) + 1

    def used(self, be: int) -> None:
        if be in self._order:
            self._order.move_to_end(be)

    def victim(self) -> int | None:
        if not self._order:
            return None
        be = next(iter(self._order))
        self._order[be] -= 1
        if not self._order[be]:
            del self._order[be]
        return be

    def overdue(self, now: float) -> int | None:  # noqa: ARG002
        return None

    def closed(self, be: int) -> None:
        self._order.pop(be, None)


class TimeToLive:
    """Takes the oldest result of all, and those older than ``seconds`` in any case."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._order: deque[tuple[float, int]] = deque()

    def put(self, now: float, be: int) -> None:
        self._order.append((now + self._seconds, be))

    def used(self, be: int) -> None:
        """Use does not lengthen a result's life."""

    def victim(self) -> int | None:
        return self._order.popleft()[1] if self._order else None

    def overdue(self, now: float) -> int | None:
        return self.victim() if self._order and self._order[0][0] <= now else None

    def closed(self, be: int) -> None:
        """Its results' times pass all the same; till then they may cost a BE subscription opened anew some of its
        results."""


class LeastSubscribed:
    """Takes from the BE subscription that the fewest subscribe to, as ``subscribers`` counted them when it was last
    looked at."""

    def __init__(self, subscribers: Callable[[int], int]) -> None:
        self._subscribers = subscribers
        self._kept: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def put(self, now: float, be: int) -> None:  # noqa: ARG002
        if be not in self._kept:
            heapq.heappush(self._heap, (self._subscribers(be), be))
        self._kept[be] = self._kept.get(be, 0) + 1

    def used(self, be: int) -> None:
        """Only the number of subscribers counts."""

    def victim(self) -> int | None:
        while self._heap:
            count, be = self._heap[0]
            actual = self._subscribers(be)
            if be not in self._kept:
                heapq.heappop(self._heap)
            elif actual > count:
                heapq.heapreplace(self._heap, (actual, be))
            else:
                return self._take(be)
        return None

    def overdue(self, now: float) -> int | None:  # noqa: ARG002
        return None

    def closed(self, be: int) -> None:
        self._kept.pop(be, None)
        if len(self._heap) > 2 * len(self._kept) + 16:
            self._heap = [(self._subscribers(kept), kept) for kept in self._kept]
            heapq.heapify(self._heap)

    def _take(self, be: int) -> int:
        self._kept[be] -= 1
        if not self._kept[be]:
            del self._kept[be]
            heapq.heappop(self._heap)
        return be


@dataclass(slots=True)
class CachedResults:
    """What is kept of one BE subscription: all after ``since``."""

    since: int
    executions: list[int] = field(default_factory=list)
    notes: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class CacheFigures:
    """How the cache does: questions it answered, questions it could not, and results that left for want of space."""

    hits: int = 0
    misses: int = 0
    evicted: int = 0


class ResultCache:
    """Bounded in bytes; keeps results for the BE subscriptions it was told to ``open``."""

    def __init__(self, limit: int, policy: EvictionPolicy) -> None:
        self._limit, self._policy = limit, policy
        self._results: dict[int, CachedResults] = {}
        self.bytes = 0
        self.figures = CacheFigures()

    def open(self, be: int, since: int) -> None:
        """From now on every result of the BE subscription after ``since`` is put here, or the BE subscription is
        closed."""
        self._results[be] = CachedResults(since)

    def close(self, be: int) -> None:
        """Forgets a BE subscription."""
        results = self._results.pop(be, None)
        self._policy.closed(be)
        self.bytes -= sum(len(note) + OVERHEAD for note in results.notes) if results else 0

    def cut(self, be: int, execution: int) -> None:
        """Forgets what is later than an execution, which is no longer what the BE subscription's results go on
        after."""
        if results := self._results.get(be):
            results.since = min(results.since, execution)
            while results.executions and results.executions[-1] > execution:
                results.executions.pop()
                self.bytes -= len(results.notes.pop()) + OVERHEAD

    def put(self, now: float, be: int, execution: int, note: bytes) -> None:
        """Keeps the BE subscription's newest result; one that is already here, or too old, is left alone."""
        results = self._results.get(be)
        if results is None or execution <= (results.executions[-1] if results.executions else results.since):
            return
        results.executions.append(execution)
        results.notes.append(note)
        self.bytes += len(note) + OVERHEAD
        self._policy.put(now, be)
        self._make_space(now)

    def after(self, be: int, execution: int) -> list[tuple[int, bytes]] | None:
        """All results of the BE subscription after an execution, or None when some of them are not here any more."""
        results = self._results.get(be)
        if results is None or execution < results.since:
            self.figures.misses += 1
            return None
        self.figures.hits += 1
        self._policy.used(be)
        start = bisect_right(results.executions, execution)
        return list(zip(results.executions[start:], results.notes[start:], strict=True))

    def _make_space(self, now: float) -> None:
        while (be := self._policy.overdue(now)) is not None:
            self._drop_oldest(be)
        while self.bytes > self._limit and (be := self._policy.victim()) is not None:
            self._drop_oldest(be)

    def _drop_oldest(self, be: int) -> None:
        results = self._results.get(be)
        if results and results.notes:
            results.since = results.executions.pop(0)
            self.bytes -= len(results.notes.pop(0)) + OVERHEAD
            self.figures.evicted += 1

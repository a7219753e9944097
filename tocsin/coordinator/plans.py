"""Carrying a plan out: move by move, no faster than allowed, and never against what has happened meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf

from tocsin.coordinator.assignments import Assignments
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.moves import OngoingMoves
from tocsin.coordinator.registry import BrokerRegistry

Step = tuple[str, str, str]
"""A subscriber, its source and its destination."""


class PendingMoves:
    """The steps of a plan that have not begun.

    A step whose subscriber is elsewhere by now, or whose destination takes nobody, is left out. When brokers come, go
    or drain, the rest of the plan is dropped: the next look at the loads makes a better one.
    """

    def __init__(
        self, registry: BrokerRegistry, assignments: Assignments, moves: OngoingMoves, limits: CoordinatorLimits
    ) -> None:
        self._registry, self._assignments, self._moves, self._limits = registry, assignments, moves, limits
        self._steps: deque[Step] = deque()
        self._next = 0.0

    def __len__(self) -> int:
        return len(self._steps)

    def follow(self, steps: Iterable[Step]) -> None:
        """Takes a plan up in place of what is left of the last."""
        self._steps = deque(steps)

    def drop(self) -> None:
        """Leaves the rest of the plan."""
        self._steps.clear()

    def advance(self, now: float) -> None:
        """Begins the moves that may begin now."""
        while self._steps and len(self._moves) < self._limits.in_flight and self._next <= now:
            subscriber, source, destination = self._steps.popleft()
            if self._possible(subscriber, source, destination):
                self._moves.start(now, subscriber, destination)
                self._next = max(self._next, now) + 1 / self._limits.per_second

    def wake(self) -> float:
        """When the next move may begin; never, when that is not a matter of time."""
        return self._next if self._steps and len(self._moves) < self._limits.in_flight else inf

    def _possible(self, subscriber: str, source: str, destination: str) -> bool:
        still = self._moves.get(subscriber) is None and self._assignments.get(subscriber).broker == source
        return still and source != destination and self._registry.member(destination).open

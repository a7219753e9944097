"""Placement: which broker a newcomer is given, and whoever has lost theirs."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import inf

from tocsin.balance.placement.placement import Placement
from tocsin.coordinator.assignments import Assignments
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.move import OngoingMove
from tocsin.coordinator.moves import OngoingMoves
from tocsin.coordinator.registry import BrokerRegistry
from tocsin.coordinator.workload import NamedWorkload
from tocsin.errors import UnavailableError


class PlacementQueue:
    """Places by a policy. Those whose broker has died wait in a queue, and whoever asks for a broker goes before them.

    What can go wrong: no broker takes newcomers. Then whoever asks is told so (:class:`UnavailableError`), and the
    others wait until a broker comes.
    """

    def __init__(
        self,
        policy: Placement,
        registry: BrokerRegistry,
        assignments: Assignments,
        workload: NamedWorkload,
        moves: OngoingMoves,
        limits: CoordinatorLimits,
    ) -> None:
        self._policy, self._registry, self._assignments, self._workload = policy, registry, assignments, workload
        self._moves, self._limits = moves, limits
        self._queue: deque[str] = deque()
        self._later: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._queue) + len(self._later)

    def place(self, now: float, subscriber: str) -> OngoingMove:
        """Begins to place a subscriber on a broker of the policy's choice."""
        return self._moves.start(now, subscriber, self._choice(subscriber))

    def shelter(self, subscriber: str) -> None:
        """Puts a subscriber whose broker is dead into the queue."""
        self._queue.append(subscriber)

    def postpone(self, now: float, subscriber: str) -> None:
        """Puts it into the queue after a while, since it could not be placed just now."""
        heappush(self._later, (now + self._limits.retry, subscriber))

    def advance(self, now: float) -> None:
        """Places those in the queue, as many as may be under way at a time."""
        while self._later and self._later[0][0] <= now:
            self._queue.append(heappop(self._later)[1])
        while self._queue and len(self._moves) < self._limits.in_flight:
            if self._homeless(self._queue[0]):
                try:
                    self.place(now, self._queue[0])
                except UnavailableError:
                    return
            self._queue.popleft()

    def wake(self) -> float:
        """When somebody is to be tried again."""
        return self._later[0][0] if self._later else inf

    def _homeless(self, subscriber: str) -> bool:
        """Whether somebody in the queue still needs to be placed."""
        placed = self._moves.get(subscriber) or self._registry.alive(self._assignments.get(subscriber).broker)
        return subscriber in self._assignments and not placed

    def _choice(self, subscriber: str) -> str:
        closed = [member.name for member in self._registry if not member.open]
        view = self._workload.view(closed)
        newcomer = self._workload.newcomer(subscriber, self._assignments.numbers_of(subscriber))
        return self._workload.name(self._policy.place(view, newcomer))

"""Subscribers whose broker may not hold what they hold: it has lost them, could not prepare for them, or was told of a
subscription on a link that broke."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from tocsin.coordinator.assignments import Assignments
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.preparations import Preparations
from tocsin.coordinator.store.records import Assignment


class Repair:
    """Asks brokers again to prepare for those who are theirs, under the stay they have.

    After the coordinator was started nobody is sure, so that every broker is told once what it should hold.
    """

    def __init__(self, assignments: Assignments, preparations: Preparations, limits: CoordinatorLimits) -> None:
        self._assignments, self._preparations, self._limits = assignments, preparations, limits
        self._later: list[tuple[float, str, int]] = []
        # How many answers are outstanding until a subscriber's broker is known to hold what it should.
        self._unsure = {assignment.subscriber: 1 for assignment in assignments.all() if assignment.broker is not None}

    def unsure(self, subscriber: str) -> bool:
        """Whether its broker may not hold what it should."""
        return subscriber in self._unsure

    def sure(self, subscriber: str) -> None:
        """Its broker is known to hold what it should."""
        self._unsure.pop(subscriber, None)

    def answered(self, subscriber: str) -> None:
        """Its broker says that it is prepared."""
        if self._unsure.get(subscriber, 0) > 1:
            self._unsure[subscriber] -= 1
        else:
            self.sure(subscriber)

    def remind(self, assignment: Assignment, answers: int = 1) -> None:
        """Asks now. ``answers`` is above 1 when that to an earlier and different question is still to come."""
        self._unsure[assignment.subscriber] = answers
        self._preparations.remind(assignment.broker, assignment.subscriber, assignment.stay)

    def add(self, now: float, subscriber: str, stay: int) -> None:
        """Asks after a while: the broker could not do it just now."""
        heappush(self._later, (now + self._limits.retry, subscriber, stay))

    def send(self, now: float) -> None:
        """Asks what is due, unless it is no longer so."""
        while self._later and self._later[0][0] <= now:
            _, subscriber, stay = heappop(self._later)
            assignment = self._assignments.get(subscriber)
            if assignment.stay == stay:
                self.remind(assignment)

    def wake(self) -> float:
        """When the next is due."""
        return self._later[0][0] if self._later else inf

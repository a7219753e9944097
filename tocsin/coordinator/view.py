"""What the coordinator knows, to be looked at: by simulations, checks and records, which change nothing."""

from __future__ import annotations

from tocsin.balance.live.workload import LiveWorkload
from tocsin.coordinator.parts import CoordinatorParts
from tocsin.coordinator.registry import BrokerRegistry
from tocsin.coordinator.store.records import Assignment
from tocsin.model.subscriber import Held


class CoordinatorView:
    """A look at the coordinator's parts."""

    def __init__(self, parts: CoordinatorParts) -> None:
        self._parts = parts

    @property
    def registry(self) -> BrokerRegistry:
        """The brokers."""
        return self._parts.registry

    @property
    def live(self) -> LiveWorkload:
        """The workload."""
        return self._parts.workload.live

    @property
    def moving(self) -> int:
        """How many subscribers are being moved."""
        return len(self._parts.moves)

    @property
    def moves_made(self) -> int:
        """How many moves were made since it started; that a newcomer is placed is none."""
        return self._parts.moves_made

    def assignment(self, subscriber: str) -> Assignment:
        """Where a subscriber is."""
        return self._parts.assignments.get(subscriber)

    def subscriptions_of(self, subscriber: str) -> list[Held]:
        """What a subscriber holds."""
        return self._parts.assignments.subscriptions_of(subscriber)

    def is_moving(self, subscriber: str) -> bool:
        """Whether a subscriber is being moved."""
        return self._parts.moves.get(subscriber) is not None

    def is_suspended(self, subscriber: str) -> bool:
        """Whether a subscriber weighs nothing, as it is away."""
        return self._parts.workload.is_suspended(subscriber)

    def broker_number(self, broker: str) -> int | None:
        """A broker's number in the live workload."""
        return self._parts.workload.number(broker)

    def rate(self, subscription: int) -> int:
        """λ of a BE subscription."""
        return self._parts.workload.rate_of(subscription)

    def population(self, broker: str) -> int:
        """How many subscribers belong to a broker."""
        return self._parts.assignments.count(broker)

    def traces(self, subscriber: str) -> list[str]:
        """Where a subscriber is known, or something that it holds."""
        assignment = self.assignment(subscriber)
        found = {
            "registered": subscriber in self._parts.assignments,
            "placed": bool(assignment.broker or assignment.destination),
            "holding": bool(self.subscriptions_of(subscriber)),
            "counted": subscriber in self._parts.workload,
            "moving": self.is_moving(subscriber),
            "online": any(subscriber in member.online for member in self.registry),
        }
        return [what for what, there in found.items() if there]

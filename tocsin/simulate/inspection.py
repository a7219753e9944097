"""A look inside running cores, for checks and records. Nothing else in the simulator knows how cores are built."""

from __future__ import annotations

from tocsin.balance.live.workload import LiveWorkload
from tocsin.broker.core import BrokerCore
from tocsin.broker.holdings import BackendSubscription, Stay
from tocsin.client.core import Core as Client
from tocsin.coordinator.core import Coordinator
from tocsin.coordinator.registry import BrokerRegistry
from tocsin.coordinator.store.records import Assignment
from tocsin.model.subscriber import Held


def stays(broker: BrokerCore) -> dict[str, Stay]:
    """Who stays on a broker."""
    return broker.holdings.stays


def backends(broker: BrokerCore) -> dict[int, BackendSubscription]:
    """The BE subscriptions a broker holds."""
    return broker.holdings.backends


def place(coordinator: Coordinator, subscriber: str) -> Assignment:
    """Where a subscriber is, as the coordinator knows it."""
    return coordinator._parts.assignments.get(subscriber)


def held(coordinator: Coordinator, subscriber: str) -> list[Held]:
    """What a subscriber holds, as the coordinator knows it."""
    return coordinator._parts.assignments.held(subscriber)


def registry(coordinator: Coordinator) -> BrokerRegistry:
    """The brokers as the coordinator knows them."""
    return coordinator._parts.registry


def live(coordinator: Coordinator) -> LiveWorkload:
    """The workload as the coordinator knows it."""
    return coordinator._parts.workload.live


def broker_number(coordinator: Coordinator, broker: str) -> int | None:
    """A broker's number in the live workload."""
    return coordinator._parts.workload.number(broker)


def rate(coordinator: Coordinator, subscription: int) -> int:
    """λ of a BE subscription, as the coordinator reckons with it."""
    return coordinator._parts.workload.rate_of(subscription)


def suspended(coordinator: Coordinator, subscriber: str) -> bool:
    """Whether a subscriber weighs nothing, as it is away."""
    return subscriber in coordinator._parts.workload._suspended


def known(coordinator: Coordinator, subscriber: str) -> list[str]:
    """Where the coordinator knows a subscriber, or something that it holds."""
    parts = coordinator._parts
    return [
        what
        for what, there in {
            "registered": subscriber in parts.assignments,
            "placed": bool(parts.assignments.get(subscriber).broker or parts.assignments.get(subscriber).destination),
            "holding": bool(parts.assignments.held(subscriber)),
            "counted": subscriber in parts.workload._subscribers,
            "moving": parts.moves.get(subscriber) is not None,
            "online": any(subscriber in member.online for member in parts.registry),
        }.items()
        if there
    ]


def moving(coordinator: Coordinator) -> int:
    """How many subscribers are being moved."""
    return len(coordinator._parts.moves)


def moved(coordinator: Coordinator) -> int:
    """How many moves were made since it started; that a newcomer is placed is none."""
    return coordinator._parts.moved


def population(coordinator: Coordinator, broker: str) -> int:
    """How many subscribers belong to a broker."""
    return coordinator._parts.assignments.count(broker)


def counted_under(client: Client, subscription: int) -> str:
    """The incarnation under which a subscriber counts what it is given."""
    return client._inbox.incarnation(subscription)

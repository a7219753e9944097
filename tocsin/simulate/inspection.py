"""A look inside running cores, for checks and records. Nothing else in the simulator knows how cores are built."""

from __future__ import annotations

from tocsin.balance.live.workload import LiveWorkload
from tocsin.broker.core import BrokerCore
from tocsin.broker.holdings import BackendSubscription, Stay
from tocsin.client.core import Core as Client
from tocsin.coordinator.core import Coordinator
from tocsin.coordinator.registry import Registry
from tocsin.coordinator.store.records import Place
from tocsin.model.subscriber import Held


def stays(broker: BrokerCore) -> dict[str, Stay]:
    """Who stays on a broker."""
    return broker.holdings.stays


def backends(broker: BrokerCore) -> dict[int, BackendSubscription]:
    """The BE subscriptions a broker holds."""
    return broker.holdings.backends


def place(coordinator: Coordinator, subscriber: str) -> Place:
    """Where a subscriber is, as the coordinator knows it."""
    return coordinator._rooms.places.get(subscriber)


def held(coordinator: Coordinator, subscriber: str) -> list[Held]:
    """What a subscriber holds, as the coordinator knows it."""
    return coordinator._rooms.places.held(subscriber)


def registry(coordinator: Coordinator) -> Registry:
    """The brokers as the coordinator knows them."""
    return coordinator._rooms.registry


def live(coordinator: Coordinator) -> LiveWorkload:
    """The workload as the coordinator knows it."""
    return coordinator._rooms.loads.live


def broker_number(coordinator: Coordinator, broker: str) -> int | None:
    """A broker's number in the live workload."""
    return coordinator._rooms.loads.number(broker)


def rate(coordinator: Coordinator, subscription: int) -> int:
    """λ of a BE subscription, as the coordinator reckons with it."""
    return coordinator._rooms.loads.rate_of(subscription)


def suspended(coordinator: Coordinator, subscriber: str) -> bool:
    """Whether a subscriber weighs nothing, as it is away."""
    return subscriber in coordinator._rooms.loads._suspended


def known(coordinator: Coordinator, subscriber: str) -> list[str]:
    """Where the coordinator knows a subscriber, or something that it holds."""
    rooms = coordinator._rooms
    return [
        what
        for what, there in {
            "registered": subscriber in rooms.places,
            "placed": bool(rooms.places.get(subscriber).broker or rooms.places.get(subscriber).destination),
            "holding": bool(rooms.places.held(subscriber)),
            "counted": subscriber in rooms.loads._subscribers,
            "moving": rooms.moves.get(subscriber) is not None,
            "online": any(subscriber in member.online for member in rooms.registry),
        }.items()
        if there
    ]


def moving(coordinator: Coordinator) -> int:
    """How many subscribers are being moved."""
    return len(coordinator._rooms.moves)


def moved(coordinator: Coordinator) -> int:
    """How many moves were made since it started; that a newcomer is placed is none."""
    return coordinator._rooms.moved


def population(coordinator: Coordinator, broker: str) -> int:
    """How many subscribers belong to a broker."""
    return coordinator._rooms.places.count(broker)


def counted_under(client: Client, subscription: int) -> str:
    """The incarnation under which a subscriber counts what it is given."""
    return client._inbox.incarnation(subscription)

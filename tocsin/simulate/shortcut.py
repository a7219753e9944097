"""Subscriptions made in one go: what the cores would agree on by six messages is put into each of them.

Like :mod:`tocsin.simulate.counted`, this is for runs in which only the loads matter. Whatever is not plain (a
subscriber that is moving or away, a BE subscription that its broker does not hold yet, anything under way) takes the
long way.
"""

from __future__ import annotations

from collections.abc import Callable

from tocsin.broker.holdings import BackendSubscription, Stay, key
from tocsin.client.actions import State
from tocsin.client.core import Core
from tocsin.client.events import Subscribe
from tocsin.client.subscriptions import Wanted
from tocsin.coordinator.core import Coordinator
from tocsin.model.subscriber import Held
from tocsin.simulate.brokerhost import BrokerHost
from tocsin.simulate.coordinatorhost import CoordinatorHost
from tocsin.simulate.counted import CountedBroker
from tocsin.simulate.person import Person


class Shortcut:
    """Makes subscriptions on the brokers of a system whose cores are :class:`CountedBroker`."""

    def __init__(self, brokers: dict[str, BrokerHost], coordinator: Callable[[], CoordinatorHost]) -> None:
        self._brokers, self._coordinator = brokers, coordinator

    def subscribe(self, person: Person, wish: Subscribe) -> bool:
        """Makes a subscription; False if that takes the long way."""
        found = self._found(person, wish)
        if found is None:
            return False
        broker, stay, backend = found
        held = broker.add(stay, backend, wish.live)
        _keep(self._coordinator().core, person.host, held)
        _confirm(person.core, wish, held)
        person.diary.begun(held.subscription, held.cursor, held.live)
        person.world.trace.event(person.world.clock.now, person.host, wish, b"%d" % held.subscription)
        return True

    def _found(self, person: Person, wish: Subscribe) -> tuple[CountedBroker, Stay, BackendSubscription] | None:
        """Whose BE subscription it would be; None if anything is in the way."""
        coordinator, name = self._coordinator(), person.host
        if not (person.alive and coordinator.alive and _idle(person.core)):
            return None
        parts = coordinator.core._parts
        place, moving = parts.assignments.get(name), parts.moves.get(name)
        host = self._brokers.get(place.broker) if place.broker and not moving else None
        if host is None or not (host.alive and host.linked) or not isinstance(host.core, CountedBroker):
            return None
        stay, backend = (
            host.core.holdings.stays.get(name),
            host.core.holdings.keys.get(key(wish.channel, wish.parameters)),
        )
        if stay is None or backend is None or stay.number != place.stay or not host.core.takes(stay, backend):
            return None
        return host.core, stay, backend


def _idle(core: Core) -> bool:
    """Whether a subscriber is served, and waits for no answer."""
    wishes = core._subscriptions
    return core.state is State.SERVING and not (wishes._asks or wishes._blocked or wishes._leaving)


def _keep(core: Coordinator, subscriber: str, held: Held) -> None:
    """As when a broker says Keep; it is stored with what comes next."""
    if core._parts.assignments.hold(subscriber, held):
        core._parts.workload.hold(subscriber, held.subscription)


def _confirm(core: Core, wish: Subscribe, held: Held) -> None:
    """As when a broker says Subscribed."""
    core._subscriptions._wanted[wish.ref] = Wanted(wish, held.subscription)
    core._subscriptions._admit(held)

"""Subscriptions made in one go: what the cores would agree on by six messages is put into each of them.

Like :mod:`tocsin.simulate.countedbroker`, this is for runs in which only the loads matter. Whatever is not plain (a
subscriber that is moving or away, a BE subscription that its broker does not hold yet, anything under way) takes the
long way.
"""

from __future__ import annotations

from collections.abc import Callable

from tocsin.broker.holdings import BackendSubscription, Stay, key
from tocsin.client.core.events import Subscribe
from tocsin.simulate.brokerhost import BrokerHost
from tocsin.simulate.clienthost import ClientHost
from tocsin.simulate.coordinatorhost import CoordinatorHost
from tocsin.simulate.countedbroker import CountedBroker


class Shortcut:
    """Makes subscriptions on the brokers of a system whose cores are :class:`CountedBroker`."""

    def __init__(self, brokers: dict[str, BrokerHost], coordinator: Callable[[], CoordinatorHost]) -> None:
        self._brokers, self._coordinator = brokers, coordinator

    def subscribe(self, person: ClientHost, call: Subscribe) -> bool:
        """Makes a subscription; False if that takes the long way."""
        coordinator = self._coordinator()
        found = self._find(coordinator, person, call)
        if found is None:
            return False
        broker, stay, backend = found
        held = broker.hold(stay, backend, call.live)
        coordinator.core.hold(person.host, held)
        person.core.confirm(call, held)
        person.diary.wanted(held.subscription)
        person.diary.begun(held.subscription, held.cursor, held.live)
        person.world.trace.event(person.world.clock.now, person.host, call, b"%d" % held.subscription)
        return True

    def _find(
        self, coordinator: CoordinatorHost, person: ClientHost, call: Subscribe
    ) -> tuple[CountedBroker, Stay, BackendSubscription] | None:
        """Whose BE subscription it would be; None if anything is in the way."""
        name = person.host
        if not (person.alive and coordinator.alive and person.core.is_settled):
            return None
        known = coordinator.core.view
        assigned = known.assignment(name)
        host = self._brokers.get(assigned.broker) if assigned.broker and not known.is_moving(name) else None
        if host is None or not (host.alive and host.linked) or not isinstance(core := host.core, CountedBroker):
            return None
        stay, backend = core.holdings.stays.get(name), core.holdings.keys.get(key(call.channel, call.parameters))
        if stay is None or backend is None or stay.number != assigned.stay or not core.takes(stay, backend):
            return None
        return core, stay, backend

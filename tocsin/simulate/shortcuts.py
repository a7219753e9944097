"""What is left out where only the loads matter: results are weighed, not sent, and subscriptions made in one go.

Logins, attachments, reports and moves go through the cores as ever. A broker credits its BE subscriptions with what an
execution brings, and hands nothing over; only the results stay in the data cluster: nothing is pulled, and no frame is
sent. What somebody missed while away is accounted on return.

What the cores would agree on about a subscription by six messages is put into each of them. Whatever is not plain (a
subscriber that is moving or away, a BE subscription that its broker does not hold yet, anything under way) takes the
long way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tocsin.balance.model.workload import Int64s
from tocsin.broker import events
from tocsin.broker.actions import Action
from tocsin.broker.core import BrokerCore
from tocsin.broker.holdings import BackendSubscription, HeldChannel, Session, Stay, key
from tocsin.broker.limits import BrokerLimits
from tocsin.client.core.events import Subscribe
from tocsin.model.subscriber import Held
from tocsin.simulate.absences import Absences, Delivered
from tocsin.simulate.brokerhost import BrokerHost
from tocsin.simulate.clienthost import ClientHost
from tocsin.simulate.coordinatorhost import CoordinatorHost
from tocsin.simulate.meters import KnownRates, Meters
from tocsin.simulate.weightcache import WeightCache

_VISITS = (events.Received, events.Closed)


class CountedBroker(BrokerCore):
    """A broker's core that can be told of an execution in one go.

    ``caught_up`` is told when somebody is back, and what that took. ``told`` is what the data cluster says of λ.
    """

    def __init__(
        self,
        *arguments: Any,
        absences: Absences,
        caught_up: Callable[[float, Delivered], None],
        told: KnownRates,
        limits: BrokerLimits | None = None,
        **options: Any,
    ) -> None:
        self._kept = WeightCache((limits or BrokerLimits()).cache_bytes)
        super().__init__(*arguments, limits=limits, cache=self._kept, rates=partial(Meters, told), **options)
        self._absences, self._caught_up = absences, caught_up
        self._audiences: dict[str, tuple[int, Int64s, Int64s]] = {}

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done, in this order."""
        # A Tick gives up BE subscriptions at most, which their number tells; all else may change who is given what.
        if not isinstance(event, events.Tick):
            self._audiences.clear()
        session = self.session(event.session) if isinstance(event, _VISITS) else None
        known = session is not None and session.stay is not None
        actions = super().handle(now, event)
        if session and session.stay and known == session.closed:
            self._visited(now, session, session.stay)
        return actions

    def count(self, now: float, name: str, execution: int, weights: Int64s, seconds: float) -> Delivered:
        """Accounts a channel's execution, of so many seconds, by what it found for each BE subscription's number."""
        channel = self.holdings.channels.get(name)
        if channel is None:
            return Delivered()
        bes, counts = self._audience(channel)
        found = weights[bes] > 0
        bes, counts = bes[found], counts[found]
        weights = weights[bes]
        self._kept.write(now, execution, bes, weights)
        incoming, outgoing, deliveries = int(weights.sum()), int(weights @ counts), int(counts.sum())
        channel.seen = channel.level = max(channel.level, execution)
        self.account(now, incoming, outgoing, name, seconds)
        return Delivered(incoming, outgoing, deliveries)

    def takes(self, stay: Stay, backend: BackendSubscription) -> bool:
        """Whether a connected subscriber can have one more subscription at once."""
        session, few = stay.session, len(stay.subscriptions) < self._limits.subscriptions
        connected = session is not None and not session.slow and backend.be not in session.cursors
        return connected and few and backend.be not in stay.subscriptions

    def hold(self, stay: Stay, backend: BackendSubscription, live: bool) -> Held:
        """As if somebody had asked for a subscription that begins now, and the coordinator had stored it."""
        self._audiences.pop(backend.channel.name, None)
        return super().hold(stay, backend, live)

    def _visited(self, now: float, session: Session, stay: Stay) -> None:
        """A subscriber has come or gone."""
        if stay.session is session:
            missed = self._absences.end(stay, self._kept)
            if any(missed):
                self.account(now, missed.incoming, missed.outgoing)
                self._caught_up(now, missed)
        elif stay.session is None:
            self._absences.begin(stay)

    def _audience(self, channel: HeldChannel) -> tuple[Int64s, Int64s]:
        """Those of a channel's BE subscriptions that somebody is there for, and to how many each goes."""
        known, held = self._audiences.get(channel.name), len(channel.backends)
        if known is None or known[0] != held:
            backends = self.select_wanted(channel)
            counts = [len(backend.current) + len(backend.ahead) for backend in backends]
            known = held, np.array([backend.be for backend in backends], np.int64), np.array(counts, np.int64)
            self._audiences[channel.name] = known
        return known[1:]


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
        assigned = coordinator.core.view.assignment(name)
        # Whoever has a destination is moving.
        host = self._brokers.get(assigned.broker) if assigned.broker and not assigned.destination else None
        if host is None or not (host.alive and host.linked) or not isinstance(core := host.core, CountedBroker):
            return None
        holdings = core.holdings
        stay, backend = holdings.stays.get(name), holdings.keys.get(key(call.channel, call.parameters))
        if stay is None or backend is None or stay.number != assigned.stay or not core.takes(stay, backend):
            return None
        return core, stay, backend

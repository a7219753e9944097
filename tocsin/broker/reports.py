"""What the coordinator is told from time to time: acknowledgements, presence and load."""

from __future__ import annotations

from math import inf
from typing import Final

from tocsin.broker.accounting import LEAST, RateChanges, Traffic
from tocsin.broker.holdings import FrontendSubscription, Holdings, Stay
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import CoordinatorMessages, DataRequests, Outbox
from tocsin.model.coordination import Load, Presence, Progress
from tocsin.model.histories import Cursor, from_wire, knows, resolve, to_wire
from tocsin.model.parts import parts, with_more
from tocsin.model.subscriber import Cursors

# A number and the punctuation around it, at most.
_NUMBER_BYTES: Final = 32


class DataRates:
    """λ of each BE subscription, in bytes per second, as the data cluster says it to every broker that has it."""

    def __init__(self, holdings: Holdings, data: DataRequests) -> None:
        self._holdings, self._data, self._changes = holdings, data, RateChanges()

    def changes(self, now: float) -> dict[int, float]:
        """Those that differ from what was last said of them; none while the data cluster cannot be heard: brokers that
        hear it know better."""
        return self._changes.take(self._now(now), self._holdings.backends) if self._data.up else {}

    def forget(self) -> None:
        """Everything is to be said again."""
        self._changes.forget()

    def _now(self, now: float) -> dict[int, float]:
        """Of the BE subscriptions that have any; most have none, so the others are remembered until they have faded."""
        rates, active = {}, self._holdings.active
        for be, backend in list(active.items()):
            rate = backend.data_rate(now)
            if rate < LEAST or self._holdings.backends.get(be) is not backend:
                del active[be]
            else:
                rates[be] = rate
        return rates


class Reports:
    """Collects changes between reports; while the coordinator is away they are only merged, so they stay small."""

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        coordinator: CoordinatorMessages,
        traffic: Traffic,
        rates: DataRates,
        limits: BrokerLimits,
    ) -> None:
        self._holdings, self._outbox, self._coordinator = holdings, outbox, coordinator
        self._traffic, self._rates, self._limits = traffic, rates, limits
        self._progress: dict[str, Cursors] = {}
        self._presence: dict[str, bool] = {}
        self._progress_at = inf
        self._report_at = 0.0

    def acknowledged(self, stay: Stay, cursors: Cursors) -> None:
        """The subscriber has had these; what it does not hold or cannot have had is left out."""
        for be, cursor in cursors.items():
            subscription = stay.subscriptions.get(stay.renumbered.get(be, be))
            if subscription and self._advances(subscription, from_wire(cursor, subscription.cursor.incarnation)):
                self._progress.setdefault(stay.subscriber, {})[subscription.backend.be] = to_wire(subscription.cursor)
        if self._progress and self._progress_at == inf:
            self._progress_at = self._outbox.now + self._limits.acknowledge_seconds

    def _advances(self, subscription: FrontendSubscription, cursor: Cursor) -> bool:
        """Whether a subscriber is further than was known. What is counted under an unknown incarnation says nothing."""
        history = subscription.backend.channel.history
        if subscription.doubt or not knows(history, cursor.incarnation):
            return False
        before = subscription.acknowledged
        subscription.acknowledged = max(before, min(resolve(history, cursor), subscription.newest))
        return subscription.acknowledged > before

    def forget(self, subscriber: str) -> None:
        """A stay is over, and how far it got is said with its end: the next of this name may be another's."""
        self._progress.pop(subscriber, None)

    def present(self, subscriber: str, online: bool) -> None:
        """A subscriber's connection to this broker has come or gone."""
        self._presence[subscriber] = online

    def connected(self) -> None:
        """A coordinator that may know nothing is told everything."""
        self._presence = {stay.subscriber: True for stay in self._holdings.stays.values() if stay.session}
        self._rates.forget()
        self._report_at = self._outbox.now

    def due(self, now: float) -> None:
        """Says what is new."""
        if not self._coordinator.up:
            return
        if now >= self._progress_at:
            self._tell_progress()
        if now >= self._report_at:
            self._report_at = now + self._limits.report_seconds
            self._report(now)

    def wake(self) -> float:
        """When something is due."""
        return min(self._progress_at, self._report_at) if self._coordinator.up else inf

    def _tell_progress(self) -> None:
        told, self._progress, self._progress_at = self._progress, {}, inf
        for part in parts(told.items(), lambda one: len(one[0]) + _NUMBER_BYTES * (1 + 2 * len(one[1]))):
            self._coordinator.tell(Progress(dict(part)))

    def _report(self, now: float) -> None:
        told, self._presence = self._presence, {}
        for part in parts(told.items(), lambda one: len(one[0]) + _NUMBER_BYTES):
            online = [name for name, there in part if there]
            self._coordinator.tell(Presence(online, [name for name, there in part if not there]))
        incoming, outgoing = self._traffic.rates(now)
        for rates, _ in with_more(parts(self._rates.changes(now).items(), lambda _: 2 * _NUMBER_BYTES)):
            self._coordinator.tell(Load(incoming, outgoing, dict(rates), self._limits.rate_seconds))

"""The front door: takes an event to the part that knows what to do, and gives back what all parts want done."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final, Protocol

import msgspec

from tocsin.broker import events
from tocsin.broker.accounting import Traffic
from tocsin.broker.actions import Action, TrustLearned
from tocsin.broker.attachments import Attachments
from tocsin.broker.cache import CacheFigures, EvictionPolicy, LeastRecentlyUsed, ResultCache
from tocsin.broker.catchup import Catchup
from tocsin.broker.corrections import Corrections
from tocsin.broker.delivery import Delivery
from tocsin.broker.demand import Demand
from tocsin.broker.holdings import BackendSubscription, HeldChannel, Holdings, Session, Stay
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.migration import Migration
from tocsin.broker.outbox import CoordinatorMessages, DataRequests, Outbox
from tocsin.broker.publishing import Publishing
from tocsin.broker.renewals import Renewals
from tocsin.broker.reports import DataRates, Reports
from tocsin.broker.sessions import Sessions, Verify
from tocsin.broker.subscriptions import SubscriptionRequests
from tocsin.model import control, coordination, subscriber
from tocsin.model.parts import parts, with_more
from tocsin.model.subscriber import Code, Held
from tocsin.model.trust import Trust

TOO_LARGE: Final = 1009
# A number and the punctuation around it, at most.
_NUMBER_BYTES: Final = 32
_REQUEST: Final[msgspec.json.Decoder[subscriber.Request]] = msgspec.json.Decoder(subscriber.Request)


class TimedPart(Protocol):
    """A part of the core that does something when its time has come; it is infinite while there is nothing to do."""

    def due(self, now: float) -> None: ...

    def wake(self) -> float: ...


class _OnlyId(msgspec.Struct):
    id: subscriber.RequestId


class BrokerCore:
    """A broker without its sockets and its clock.

    ``verify`` gives the subscriber a token was made for, or raises UnauthorizedError. Sessions are numbered
    by the driver. Times are seconds of any clock that never goes back. What can go wrong is told by each part; a
    message of a subscriber that cannot be read is answered with an Error, and closes its connection unless it has an
    ``id`` that can be.
    """

    def __init__(
        self,
        name: str,
        url: str,
        verify: Verify,
        *,
        limits: BrokerLimits | None = None,
        policy: Callable[[Callable[[int], int]], EvictionPolicy] | None = None,
        capacity: float = 1.0,
        location: tuple[float, float] | None = None,
        cache: ResultCache | None = None,
        rates: Callable[[Holdings, DataRequests], DataRates] = DataRates,
    ) -> None:
        """``policy`` makes the cache's policy, given a function that counts a BE subscription's subscribers.

        A simulation has a ``cache`` of its own, and ``rates`` make what says λ to the coordinator.
        """
        self._limits = limits = limits or BrokerLimits()
        self._hello = coordination.Hello(name, url, [], [], capacity, location)
        self._holdings, self._outbox = Holdings(), Outbox(limits.waiting_bytes)
        self._data, self._coordinator = DataRequests(self._outbox), CoordinatorMessages(self._outbox)
        self._traffic = Traffic(limits.rate_seconds)
        self._cache = cache or ResultCache(
            limits.cache_bytes, policy(self._subscribers) if policy else LeastRecentlyUsed()
        )
        h, o, d, c = self._holdings, self._outbox, self._data, self._coordinator
        self._reports = Reports(h, o, c, self._traffic, rates(h, d), limits)
        self._demand = Demand(o, self._cache)
        self._catchup = Catchup(h, o, d, self._cache, self._traffic, limits, self._demand)
        self._corrections = Corrections(o, c, limits)
        self._renewals = Renewals(h, o, self._cache, self._catchup, self._corrections)
        self._attachments = Attachments(h, o, d, self._cache, limits, self._renewals, self._heard)
        self._delivery = Delivery(
            h, o, d, self._cache, self._catchup, self._traffic, limits, self._demand, self._attachments.reattach
        )
        self._requests = SubscriptionRequests(o, c, self._attachments, self._corrections, self._catchup, limits)
        self._sessions = Sessions(
            name, h, o, c, self._attachments, self._catchup, self._reports, self._demand, verify, limits
        )
        self._migration = Migration(
            h,
            o,
            c,
            self._attachments,
            self._requests,
            self._corrections,
            self._catchup,
            self._sessions,
            self._reports,
            self._demand,
        )
        self._publishing = Publishing(o, limits)
        self._timed: tuple[TimedPart, ...] = (
            self._sessions,
            self._attachments,
            self._requests,
            self._corrections,
            self._delivery,
            self._catchup,
            self._publishing,
            self._reports,
        )
        # Asked after every event.
        self._wakes = tuple(part.wake for part in self._timed)
        self._wake = self._soonest()

    def handle(self, now: float, event: events.Event) -> list[Action]:
        """What is to be done, in this order."""
        self._outbox.now = now
        self._dispatch(event)
        self._wake = self._soonest()
        # Most events leave every part with nothing to do, and asking them all takes longer than the event itself.
        if self._wake <= now:
            for part in self._timed:
                part.due(now)
            self._wake = self._soonest()
        for session in self._outbox.send_notes():
            self._sessions.check(session)
        return self._outbox.take()

    def wake(self) -> float | None:
        """When the core wants a Tick, at the latest."""
        return self._wake if self._wake < inf else None

    @property
    def cache_figures(self) -> CacheFigures:
        """How the cache has done so far."""
        return self._cache.figures

    @property
    def cached_bytes(self) -> int:
        """How much the cache holds."""
        return self._cache.bytes

    @property
    def holdings(self) -> Holdings:
        """Whom it serves, and what they want; only to be looked at."""
        return self._holdings

    @property
    def stranger(self) -> int | None:
        """The session that has been without a login for longest: the one to go first where there are too many."""
        return self._sessions.stranger()

    def load(self, now: float) -> tuple[float, float]:
        """I and O, bytes per second."""
        return self._traffic.rates(now)

    @property
    def traffic(self) -> Traffic:
        """All that came in and went out; only to be looked at."""
        return self._traffic

    @property
    def limits(self) -> BrokerLimits:
        """What it allows, and how long it waits."""
        return self._limits

    def session(self, id: int) -> Session | None:
        """A subscriber's connection, by its number; only to be looked at."""
        return self._sessions.get(id)

    def select_wanted(self, channel: HeldChannel) -> dict[BackendSubscription, None]:
        """Those of a channel's BE subscriptions that somebody is there for."""
        return self._demand.select(channel.backends.values())

    def account(self, now: float, incoming: int, outgoing: int, channel: str = "", seconds: float = 0.0) -> None:
        """Counts so many bytes as if they had come in and gone out, for an execution of so many seconds."""
        self._traffic.receive(now, incoming, channel, seconds)
        self._traffic.send(now, outgoing, channel, seconds)

    def hold(self, stay: Stay, backend: BackendSubscription, live: bool) -> Held:
        """As if somebody had asked for a subscription that begins now, and the coordinator had stored it."""
        subscription = self._requests.add(stay, backend, live, backend.channel.seen)
        self._catchup.start(subscription)
        return subscription.held

    def _heard(self, channel: HeldChannel) -> None:
        self._delivery.pull(channel)

    def _soonest(self) -> float:
        return min([wake() for wake in self._wakes])

    def _subscribers(self, be: int) -> int:
        backend = self._holdings.backends.get(be)
        return len(backend.subscriptions) if backend else 0

    def _dispatch(self, event: events.Event) -> None:
        # Each case that is not it costs as much as a call, so what comes most often is first.
        match event:
            case events.Received(id, data):
                if session := self._sessions.get(id):
                    self._received(session, data)
            case events.Told(message):
                self._told(message)
            case events.Flushed(id, waiting):
                self._sessions.flushed(id, waiting)
            case events.Opened(id):
                self._sessions.opened(id)
            case events.Closed(id):
                self._sessions.closed(id)
            case events.Connected(link):
                self._connected(link)
            case events.Lost(link):
                self._lost(link)
            case events.BatchPublished():
                self._publishing.published(event)
            case events.BatchFailed():
                self._publishing.failed(event)

    def _connected(self, link: events.LinkName) -> None:
        if link == "data":
            self._data.connected()
            self._traffic.begin(self._outbox.now)
            self._attachments.connected()
            self._catchup.connected()
            return
        self._coordinator.up = True
        self._migration.connected()
        self._greet()
        # What subscribers have asked for since counts, so it comes last.
        self._corrections.connected()
        self._requests.connected()
        self._reports.connected()

    def _greet(self) -> None:
        stays = parts(self._holdings.stays.values(), lambda stay: len(stay.subscriber) + _NUMBER_BYTES)
        for part, more in with_more(stays):
            serving = [coordination.StayId(stay.subscriber, stay.number) for stay in part if stay.arrived]
            prepared = [coordination.StayId(stay.subscriber, stay.number) for stay in part if not stay.arrived]
            hello = msgspec.structs.replace(self._hello, serving=serving, prepared=prepared, more=more)
            self._coordinator.tell(hello)

    def _lost(self, link: events.LinkName) -> None:
        if link == "coordinator":
            self._coordinator.up = False
            return
        self._data.lost()
        self._attachments.lost()
        self._delivery.lost()
        self._catchup.lost()

    def _told(self, message: events.FromData | coordination.FromCoordinator) -> None:
        match message:
            case control.Executed():
                self._attachments.expect(message.channel)
                self._delivery.executed(message)
                self._attachments.strangers(message.channel, message.bes)
            case control.Behind():
                self._attachments.expect(message.channel)
                self._delivery.behind(message)
            case control.Dropped():
                self._attachments.dropped(message)
            case control.Changed():
                self._attachments.changed(message)
            case control.Failing():
                self._delivery.failing(message)
            case control.Attached() | control.Detached() | control.Results() | control.Error():
                self._data.answered(message)
            case coordination.Prepare():
                self._migration.prepare(message)
            case coordination.Handover():
                self._migration.handover(message)
            case coordination.Release():
                self._migration.release(message)
            case coordination.Kept(ref):
                self._requests.kept(ref)
                self._corrections.kept(ref)
            case coordination.Refused(code, text, details):
                self._requests.refused(details.get("ref", 0), code, text)
                self._corrections.refused(details.get("ref", 0), code)
            case coordination.Accepted(trust, seconds):
                self._demand.away_seconds = seconds
                self._learn(trust)
            case coordination.Trusted(trust):
                self._learn(trust)

    def _learn(self, trust: Trust) -> None:
        self._outbox.add(TrustLearned(trust))
        self._sessions.judge(trust)

    def _received(self, session: Session, data: bytes) -> None:
        if len(data) > self._limits.message_bytes:
            message = f"a message of {len(data)} bytes; at most {self._limits.message_bytes} are taken"
            self._sessions.fail(session, TOO_LARGE, "too-large", message)
        elif self._sessions.exceeds_rate(session):
            rate = self._limits.messages_per_second
            self._sessions.fail(session, Code.FLOOD, "flood", f"more than {rate:g} messages per second; send fewer")
        else:
            self._read(session, data)
            self._sessions.slow_down(session, len(data))

    def _read(self, session: Session, data: bytes) -> None:
        try:
            request = _REQUEST.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._unreadable(session, data, str(error))
            return
        if isinstance(request, subscriber.Login) and session.stay is None:
            self._sessions.login(session, request)
        elif isinstance(request, subscriber.Login) or session.stay is None:
            self._sessions.fail(session, Code.UNREADABLE, "invalid", "log in first, and only once")
        else:
            self._act(session, session.stay, request)

    def _unreadable(self, session: Session, data: bytes, reason: str) -> None:
        message = f"the message cannot be read: {reason}"
        id = _id(data)
        if id is None or session.stay is None:
            self._sessions.fail(session, Code.UNREADABLE, "invalid", message)
        else:
            self._outbox.refuse(session, "invalid", message, id)

    def _act(self, session: Session, stay: Stay, request: subscriber.Request) -> None:
        match request:
            case subscriber.Acknowledge(cursors):
                self._reports.acknowledged(stay, cursors)
            case subscriber.Subscribe():
                self._requests.subscribe(session, stay, request)
            case subscriber.Unsubscribe():
                self._requests.unsubscribe(session, stay, request)
            case subscriber.Publish():
                self._publishing.publish(session, request)
            case subscriber.Logout():
                self._sessions.end(session, Code.LOGOUT, "as asked")


def _id(data: bytes) -> int | None:
    """The id of a message that may be wrong in every other way."""
    try:
        return msgspec.json.decode(data, type=_OnlyId).id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None

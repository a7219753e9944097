"""Connections: from opening to login, one per subscriber, none of which may hurt the others."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.broker.actions import ReadLater
from tocsin.broker.attachments import Attachments
from tocsin.broker.catchup import Catchup
from tocsin.broker.deadlines import Appointments, Deadlines
from tocsin.broker.demand import Demand
from tocsin.broker.holdings import Bearer, FrontendSubscription, Holdings, Session, Stay
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import CoordinatorMessages, Outbox
from tocsin.broker.pace import SubscriberPace
from tocsin.broker.reports import Reports
from tocsin.errors import UnauthorizedError
from tocsin.model.coordination import Arrived
from tocsin.model.histories import Cursor, Era, from_wire, knows, resolve, since
from tocsin.model.parts import parts, size, with_more
from tocsin.model.subscriber import VERSION, Code, Cursors, Login, Slow, Welcome
from tocsin.model.trust import Trust

Verify = Callable[[str], Bearer]


class Sessions:
    """All connections.

    What can go wrong: no login in time, a token that is not valid or no longer, a subscriber of another broker, another
    version of the protocol (each closes the connection with its code, after an Error that says why), a second
    connection of the same subscriber (the first is closed), a connection that does not take what it is sent (told Slow
    and caught up later; one that goes on asking without reading the answers is closed).
    """

    def __init__(
        self,
        name: str,
        holdings: Holdings,
        outbox: Outbox,
        coordinator: CoordinatorMessages,
        attachments: Attachments,
        catchup: Catchup,
        reports: Reports,
        demand: Demand,
        verify: Verify,
        limits: BrokerLimits,
    ) -> None:
        self._name, self._holdings, self._outbox, self._coordinator = name, holdings, outbox, coordinator
        self._attachments, self._catchup, self._reports = attachments, catchup, reports
        self._demand, self._verify, self._limits = demand, verify, limits
        self._sessions: dict[int, Session] = {}
        self._logins: Deadlines[int] = Deadlines(limits.login_seconds)
        self._ends: Appointments[int] = Appointments()

    def get(self, id: int) -> Session | None:
        """The session of this number, if it is open."""
        return self._sessions.get(id)

    def stranger(self) -> int | None:
        """The session that has been without a login for longest."""
        return self._logins.first()

    def opened(self, id: int) -> None:
        """A new connection."""
        self._sessions[id] = Session(id, SubscriberPace(self._limits, self._outbox.now))
        self._logins.set(self._outbox.now, id)

    def closed(self, id: int) -> None:
        """A connection is gone."""
        if session := self._sessions.get(id):
            self._forget(session)

    def end(self, session: Session, code: int, reason: str) -> None:
        """Closes a connection."""
        self._outbox.close(session, code, reason)
        self._forget(session)

    def fail(self, session: Session, close: int, code: str, message: str) -> None:
        """Says what is wrong, and closes."""
        self._outbox.refuse(session, code, message)
        self.end(session, close, code)

    def exceeds_rate(self, session: Session) -> bool:
        """Counts a message; whether there were too many."""
        return session.pace.exceeds(self._outbox.now)

    def slow_down(self, session: Session, size: int) -> None:
        """Counts the bytes of a message; who says too much is read later."""
        seconds = session.pace.wait(self._outbox.now, size)
        if seconds and not session.closed:
            self._outbox.add(ReadLater(session.id, seconds))

    def login(self, session: Session, login: Login) -> None:
        """Answered with Welcome; what was missed follows."""
        if login.version != VERSION:
            message = f"version {login.version} of the protocol is not spoken here; use version {VERSION}"
            self.fail(session, Code.UNREADABLE, "version", message)
            return
        try:
            bearer = self._verify(login.token)
        except UnauthorizedError as error:
            self.fail(session, Code.UNAUTHORIZED, error.code, str(error))
            return
        stay = self._holdings.stays.get(bearer.name)
        if stay is None or stay.registration != bearer.registration:
            # Where somebody else of this name was removed, the coordinator knows who is who.
            self.fail(session, Code.ELSEWHERE, "elsewhere", "not a subscriber of this broker; ask the coordinator")
            return
        if self._exceeds_rate_with(session, stay):
            self.fail(session, Code.FLOOD, "flood", "too many logins in too short a time; come back later")
            return
        self._logins.drop(session.id)
        session.bearer = bearer
        self._ends.set(self._outbox.now + bearer.seconds, session.id)
        self._welcome(session, stay, login.cursors)

    def flushed(self, id: int, waiting: int) -> None:
        """Goes on with a slow connection once half of what is allowed waits, or less."""
        session = self._sessions.get(id)
        if session is None:
            return
        session.waiting = waiting
        if session.slow and waiting <= self._limits.waiting_bytes // 2:
            session.slow, session.unread = False, 0
            self._start(session)

    def check(self, session: Session) -> None:
        """After something was sent: whether it is too much."""
        most = self._limits.waiting_bytes
        if session.closed or session.waiting <= most:
            return
        if session.unread > most:
            self.end(session, Code.FLOOD, "asks without reading the answers")
        elif not session.slow:
            session.slow = True
            self._stop(session)
            self._outbox.reply(session, Slow(session.waiting))

    def judge(self, trust: Trust) -> None:
        """Closes connections whose tokens are not taken any more."""
        for session in list(self._sessions.values()):
            if (its := session.bearer) is None:
                continue
            if fault := trust.fault(name=its.name, token=its.token, key=its.key, series=its.series):
                self.fail(session, Code.UNAUTHORIZED, UnauthorizedError.code, fault)

    def due(self, now: float) -> None:
        """Closes connections without a login, and those whose token has ended."""
        for id in self._logins.due(now):
            seconds = self._limits.login_seconds
            self.fail(self._sessions[id], Code.LATE, "late", f"no login came within {seconds:g} seconds")
        for id in self._ends.due(now):
            session = self._sessions[id]
            name = session.bearer.name if session.bearer else ""
            message = f"the token of {name} is no longer valid: ask the coordinator for a new one"
            self.fail(session, Code.UNAUTHORIZED, UnauthorizedError.code, message)

    def wake(self) -> float:
        """When something is due."""
        return min(self._logins.soonest, self._ends.soonest)

    def _exceeds_rate_with(self, session: Session, stay: Stay) -> bool:
        """Has a connection go on at its subscriber's pace; whether that is too fast."""
        if stay.pace is None:
            stay.pace = session.pace
            return False
        session.pace = stay.pace
        return self.exceeds_rate(session)

    def _welcome(self, session: Session, stay: Stay, cursors: Cursors) -> None:
        if stay.session:
            self.end(stay.session, Code.REPLACED, "the same subscriber has connected again")
        for be, subscription in stay.subscriptions.items():
            told = from_wire(cursors[be], subscription.cursor.incarnation) if be in cursors else subscription.doubt
            self._judge(subscription, told)
        stay.session, session.stay = session, stay
        session.cursors = {be: from_wire(cursor, "") for be, cursor in cursors.items() if be not in stay.subscriptions}
        self._greet(session, stay, _histories(stay, cursors))
        if not stay.arrived:
            stay.arrived = True
            self._coordinator.tell(Arrived(stay.subscriber, stay.number))
        self._reports.present(stay.subscriber, True)
        self._start(session)

    def _greet(self, session: Session, stay: Stay, histories: dict[str, list[Era]]) -> None:
        held = (subscription.held for subscription in stay.subscriptions.values())
        for part, more in with_more(parts(held, size)):
            rest = ({}, {}) if more else (_newest(stay), histories)
            self._outbox.reply(session, Welcome(stay.subscriber, self._name, VERSION, part, *rest, more=more))
            # Whoever has much to be told of cannot be told again and again.
            session.pace.exceeds(self._outbox.now, int(more))

    def _judge(self, subscription: FrontendSubscription, cursor: Cursor | None) -> None:
        """Where a subscription goes on; what its subscriber knows and this broker does not is asked for first."""
        channel = subscription.backend.channel
        if cursor is None or knows(channel.history, cursor.incarnation):
            subscription.doubt = None
            _rewind(subscription, None if cursor is None else max(0, resolve(channel.history, cursor)))
            return
        subscription.doubt, subscription.sent = cursor, subscription.acknowledged
        channel.doubted = True
        self._attachments.reattach(channel, [subscription.backend])

    def _start(self, session: Session) -> None:
        for subscription in list(session.stay.subscriptions.values()) if session.stay else []:
            self._catchup.start(subscription)

    def _stop(self, session: Session) -> None:
        for subscription in session.stay.subscriptions.values() if session.stay else []:
            self._catchup.stop(subscription)

    def _forget(self, session: Session) -> None:
        session.closed = True
        self._sessions.pop(session.id, None)
        self._logins.drop(session.id)
        self._ends.drop(session.id)
        stay = session.stay
        if stay and stay.session is session:
            self._stop(session)
            stay.session = None
            self._demand.expect(stay)
            self._reports.present(stay.subscriber, False)


def _newest(stay: Stay) -> dict[str, int]:
    """Per channel of a subscriber's subscriptions, the last execution this broker knows of."""
    newest: dict[str, int] = {}
    for subscription in stay.subscriptions.values():
        channel = subscription.backend.channel.name
        newest[channel] = max(newest.get(channel, 0), subscription.newest)
    return newest


def _histories(stay: Stay, cursors: Cursors) -> dict[str, list[Era]]:
    """The histories of those channels whose incarnation is another than that of the subscriber's cursors."""
    histories: dict[str, list[Era]] = {}
    for be, subscription in stay.subscriptions.items():
        channel, cursor = subscription.backend.channel, cursors.get(be)
        if isinstance(cursor, Cursor) and not subscription.doubt and cursor.incarnation != channel.incarnation:
            history = since(channel.history, cursor.incarnation)
            histories[channel.name] = max(history, histories.get(channel.name, []), key=len)
    return histories


def _rewind(subscription: FrontendSubscription, cursor: int | None) -> None:
    """Where a subscription goes on: from what the subscriber knows, or else from what it has acknowledged.

    A live one goes on from now; but a subscriber that has just been moved here was not away, and says what it knows.
    """
    moved = not subscription.stay.arrived and cursor is not None
    if subscription.live and not moved:
        subscription.sent = subscription.newest
    else:
        subscription.sent = min(subscription.acknowledged if cursor is None else cursor, subscription.newest)
    subscription.acknowledged = subscription.sent

"""Mediation between edges: a session of two brokers at a time, and the migration of subscribers in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import inf

from tocsin.content.filter import Filter
from tocsin.content.values import Publication
from tocsin.errors import FilterError
from tocsin.overlay.departures import ArrivalCount, Departures
from tocsin.overlay.detection import Availability, OffloadAction
from tocsin.overlay.dialogue import Move, Settle
from tocsin.overlay.exchange import Exchange
from tocsin.overlay.gauges import Gauges
from tocsin.overlay.held import HeldSubscription
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.links import LatestRequests, Links, read
from tocsin.overlay.load import BrokerLoad
from tocsin.overlay.messages import (
    Control,
    SessionAccept,
    SessionBody,
    SessionDone,
    SessionEnd,
    SessionMigrating,
    SessionReject,
    SessionRequest,
)
from tocsin.overlay.offload import METRICS, offload
from tocsin.overlay.post import Post
from tocsin.overlay.profile import Profile
from tocsin.overlay.subscriptions import Subscriptions
from tocsin.overlay.surroundings import Surroundings
from tocsin.overlay.tuning import Tuning


@dataclass(frozen=True)
class Estimate:
    """What an offloader has chosen in a session, and what it expects both brokers to be like afterwards."""

    id: str
    acceptor: str
    action: OffloadAction
    subscribers: int
    own: BrokerLoad
    other: BrokerLoad


@dataclass
class _Asking:
    """Waits for an acceptor's answer; the first action is the one that is tried."""

    id: str
    actions: list[OffloadAction]
    ends: float

    def is_asked(self, broker: str, id: str) -> bool:
        """Whether an answer is from whom it was asked of."""
        return (self.actions[0].acceptor, self.id) == (broker, id)


@dataclass
class _Sampling:
    """Has an acceptor, and samples publications; the actions are all that could be done with it."""

    id: str
    acceptor: str
    actions: list[OffloadAction]
    profile: Profile
    other: BrokerLoad
    ends: float


@dataclass
class _Migrating:
    """Has sent subscribers to the acceptor."""

    id: str
    acceptor: str
    subscribers: list[str]
    ends: float


@dataclass
class _Accepting:
    """Takes subscribers. These are served here of who said that they come in this session; how many migrate, and who
    is ``missing`` of them, the offloader says, ``since`` when they are waited for."""

    id: str
    offloader: str
    ends: float
    arrived: set[str] = field(default_factory=set)
    migrate: int = 0
    missing: set[str] | None = None
    since: float = inf


class Mediation:
    """An edge's sessions, one at a time.

    The offloader asks those on its list in turn, samples what its subscriptions match, chooses who is to go, and sends
    them to the acceptor; when that says DONE, they may leave.

    What can go wrong: any message is lost, or the other broker dies. Every step has a time after which the session
    goes on without what it waited for, so nobody is BUSY for ever; who has been sent to the acceptor is told to settle
    in any case, and leaves only if it is served there. An answer that comes too late is answered with an end, and one
    that comes twice changes nothing. Who migrates the offloader tells the acceptor: what a subscriber says makes a
    session neither longer nor shorter. Subscribers do not go: the acceptor waits only while some come, and they are not
    chosen again for a while (:class:`Departures`). Nobody reaches an acceptor: others are asked before it.

    ``estimate`` is of the last session in which this one has sent subscribers away.
    """

    def __init__(
        self,
        name: str,
        incarnation: str,
        post: Post,
        links: Links,
        subscriptions: Subscriptions,
        surroundings: Surroundings,
        gauges: Gauges,
        tuning: Tuning,
        limits: OverlayLimits,
    ) -> None:
        self._name, self._incarnation = name, incarnation
        self._post, self._links, self._subscriptions = post, links, subscriptions
        self._surroundings, self._gauges, self._tuning, self._limits = surroundings, gauges, tuning, limits
        self._session: _Asking | _Sampling | _Migrating | _Accepting | None = None
        self._sessions = 0
        self.estimate: Estimate | None = None
        # What each broker has asked for last: what comes twice is answered once.
        self._requests = LatestRequests()
        self._departures = Departures(limits)
        # Who came in the session that this one accepts, and is not served yet.
        self._coming: set[str] = set()

    @property
    def stage(self) -> str:
        """What is done in a session: asking, sampling, migrating or accepting; empty without one."""
        stages = {_Asking: "asking", _Sampling: "sampling", _Migrating: "migrating", _Accepting: "accepting"}
        return stages[type(self._session)] if self._session else ""

    def begin(self, actions: list[OffloadAction]) -> None:
        """Tries what the detection has found, in turn; last of all with whom nobody arrived."""
        if self._session is None and actions:
            unreached = {each.acceptor for each in self.in_vain if each.missing == each.sent}
            self._ask(sorted(actions, key=lambda action: action.acceptor in unreached))

    @property
    def in_vain(self) -> list[ArrivalCount]:
        """The last sessions with other edges that most did not reach whom this one sent there."""
        return self._departures.in_vain(self._post.now)

    def hear(self, sender: str, message: SessionBody) -> None:
        """Another broker says something about a session."""
        match message:
            case SessionRequest(id):
                self._requested(sender, id)
            case SessionAccept():
                self._accepted(sender, message)
            case SessionReject(id):
                if isinstance(self._session, _Asking) and self._session.is_asked(sender, id):
                    self._ask_next(self._session)
            case SessionMigrating(id, subscribers):
                session = self._session
                if isinstance(session, _Accepting) and (session.id, session.offloader) == (id, sender):
                    self._expect(session, subscribers)
            case SessionDone(id, missing):
                session = self._session
                if isinstance(session, _Migrating) and (session.id, session.acceptor) == (id, sender):
                    self._settle(session, missing)
            case SessionEnd(id, vain):
                session = self._session
                if isinstance(session, _Accepting) and (session.id, session.offloader) == (id, sender):
                    if vain:
                        self._surroundings.get_nobody(sender)
                    self._finish()

    def record(self, content: Publication, matched: list[Filter], size: int) -> None:
        """A publication came, which may be a sample."""
        session = self._session
        if isinstance(session, _Sampling):
            session.profile.record(self._post.now, content, matched, size)
            if session.profile.complete:
                self._choose(session)

    def came(self, subscriber: str, id: str) -> None:
        """A subscriber came here that migrates in a session."""
        session = self._session
        if isinstance(session, _Accepting) and session.id == id:
            self._coming.add(subscriber)

    def served(self, held: HeldSubscription) -> None:
        """A subscriber is served here."""
        session = self._session
        if held.subscriber in self._coming and isinstance(session, _Accepting):
            self._coming.discard(held.subscriber)
            session.arrived.add(held.subscriber)
            if session.missing and held.subscriber in session.missing:
                self._arrived(session, held.subscriber)

    def due(self, now: float) -> None:
        """Goes on without what has not come in time."""
        session = self._session
        if session is None or self.wake() > now:
            return
        match session:
            case _Asking():
                self._ask_next(session)
            case _Sampling():
                self._choose(session)
            case _Migrating():
                self._settle(session)
            case _Accepting():
                self._done(session)

    def wake(self) -> float:
        """When there is something to do."""
        session = self._session
        if isinstance(session, _Migrating):
            return min(session.ends, self._surroundings.silent_at(session.acceptor))
        return session.ends if session else inf

    def _ask(self, actions: list[OffloadAction]) -> None:
        self._sessions += 1
        id = f"{self._incarnation}-{self._sessions}"
        self._session = _Asking(id, actions, self._post.now + self._limits.request_seconds)
        self._surroundings.busy = True
        self._tell(actions[0].acceptor, SessionRequest(id))

    def _ask_next(self, session: _Asking) -> None:
        """The next one on the list, if there is another. Nothing was exchanged, so nothing has to stabilise."""
        refused = session.actions[0].acceptor
        left = [action for action in session.actions if action.acceptor != refused]
        self._session, self._surroundings.busy = None, False
        if left:
            self._ask(left)

    def _requested(self, sender: str, id: str) -> None:
        if not self._requests.is_new(sender, id, self._post.now):
            return
        state, load = self._surroundings.state(), self._surroundings.load()
        if state is not Availability.OK or load is None:
            self._tell(sender, SessionReject(id, state.value))
            return
        limits = self._limits
        seconds = self._tuning.sampling_seconds + limits.request_seconds + limits.grace_seconds
        self._session, self._surroundings.busy = _Accepting(id, sender, self._post.now + seconds), True
        covering = [str(filter) for filter in self._links.publications.own.covering_set()]
        self._tell(sender, SessionAccept(id, load, covering))

    def _expect(self, session: _Accepting, subscribers: list[str]) -> None:
        """Waits for these, of whom some may have come before this was heard."""
        if session.missing is None:
            session.migrate, session.since = len(set(subscribers)), self._post.now
            session.missing = set(subscribers) - session.arrived
            for subscriber in session.arrived.intersection(subscribers):
                self._departures.brought(subscriber)
            self._wait_for_more(session, session.missing)

    def _arrived(self, session: _Accepting, subscriber: str) -> None:
        """One of those whom the offloader has named. Whoever else says that it comes in this session does not count:
        its id is no secret."""
        assert session.missing is not None
        self._departures.brought(subscriber)
        session.missing.discard(subscriber)
        self._wait_for_more(session, session.missing)

    def _wait_for_more(self, session: _Accepting, missing: set[str]) -> None:
        """The time is for so many; yet it is over when nobody has come for a while, and whoever comes gives the others
        no more than its own share of it."""
        if not missing:
            self._done(session)
            return
        limits = self._limits
        count, came = min(session.migrate, limits.migrating), session.migrate - len(missing)
        session.ends = min(
            session.since + count * limits.migration_seconds,
            session.since + limits.arriving_seconds + came * limits.migration_seconds,
            self._post.now + limits.arriving_seconds,
        )

    def _accepted(self, sender: str, message: SessionAccept) -> None:
        session = self._session
        if isinstance(session, _Sampling | _Migrating) and (session.id, session.acceptor) == (message.id, sender):
            return
        if not isinstance(session, _Asking) or not session.is_asked(sender, message.id):
            self._tell(sender, SessionEnd(message.id))
            return
        try:
            covering = [read(text) for text in message.covering]
        except FilterError:
            # It is of another version: nothing can be estimated with it.
            self._tell(sender, SessionEnd(message.id))
            self._ask_next(session)
            return
        profile = Profile(self._post.now, covering, self._tuning)
        actions = [action for action in session.actions if action.acceptor == sender]
        self._session = _Sampling(session.id, sender, actions, profile, message.load, profile.ends)

    def _choose(self, session: _Sampling) -> None:
        """Chooses who is to go, by the first action that has anybody go."""
        profile, now = session.profile, self._post.now
        profile.finish(now)
        arrivals = self._gauges.arrivals(now, profile.seconds(now))
        if arrivals is not None:
            profile.incoming = arrivals
        for action in session.actions:
            exchange = self._exchange(session, action.overloaded)
            if exchange is None:
                break
            offload(action.algorithm, exchange, action.overloaded)
            if exchange.chosen and (action.overloaded or exchange.improves(METRICS[action.algorithm])):
                going = [name for _, subscribers in exchange.chosen for name in subscribers]
                self.estimate = Estimate(session.id, session.acceptor, action, len(going), exchange.own, exchange.other)
                self._migrate(session, going)
                return
        self._surroundings.send_nobody(session.acceptor)
        self._tell(session.acceptor, SessionEnd(session.id, vain=True))
        self._finish()

    def _exchange(self, session: _Sampling, overloaded: bool) -> Exchange | None:
        """What can be chosen. Those who are about to leave are here no more; those who would not go stay.

        Unless this broker is overloaded, nobody goes for whom the acceptor would have to send others back.
        """
        own, held = self._surroundings.load(), self._subscriptions.by_filter
        if own is None:
            return None
        now, tuning, count = self._post.now, self._tuning, sum(map(len, held.values()))
        here = _without(held, self._departures.leaving(now))
        own = own.change(0.0, 0.0, sum(map(len, here.values())) - count)
        everybody = (name for names in here.values() for name in names)
        choice = _without(here, self._departures.staying(now, session.acceptor, everybody))
        staying = [filter for filter, names in here.items() if len(choice.get(filter, ())) < len(names)]
        bound = None if overloaded else tuning.local.times(tuning.upset)
        order = self._links.publications.own
        return Exchange(choice, order, session.profile, own, session.other, tuning, bound, staying)

    def _migrate(self, session: _Sampling, subscribers: list[str]) -> None:
        limits = self._limits
        seconds = min(len(subscribers), limits.migrating) * limits.migration_seconds + 2 * limits.grace_seconds
        self._session = _Migrating(session.id, session.acceptor, subscribers, self._post.now + seconds)
        self._tell(session.acceptor, SessionMigrating(session.id, subscribers))
        address = self._surroundings.address(session.acceptor)
        for subscriber in subscribers:
            if held := self._subscriptions.get(subscriber):
                self._post.reply(held.client, Move(address, session.id, len(subscribers)))

    def _settle(self, session: _Migrating, missing: list[str] | None = None) -> None:
        """Whoever is served by the acceptor leaves, when what is queued here has been sent. The acceptor has said who
        is not there, unless it says nothing any more."""
        seconds = min(self._gauges.queued_seconds, self._limits.leaving_seconds)
        for subscriber in session.subscribers:
            if held := self._subscriptions.get(subscriber):
                self._post.reply(held.client, Settle(session.id, seconds))
        now = self._post.now
        left = now + seconds + 2 * self._limits.grace_seconds
        self._departures.settle(now, session.acceptor, session.subscribers, missing, left)
        self._finish()

    def _done(self, session: _Accepting) -> None:
        self._tell(session.offloader, SessionDone(session.id, sorted(session.missing or ())))
        self._finish()

    def _finish(self) -> None:
        self._session, self._surroundings.busy = None, False
        self._coming.clear()
        self._surroundings.stabilise()

    def _tell(self, broker: str, message: SessionBody) -> None:
        self._links.route(Control({"to": broker}, self._name, message))


def _without(held: Mapping[Filter, list[str]], names: Collection[str]) -> dict[Filter, list[str]]:
    """Filters that others want besides these subscribers, with those."""
    left = {filter: [name for name in all_names if name not in names] for filter, all_names in held.items()}
    return {filter: all_names for filter, all_names in left.items() if all_names}

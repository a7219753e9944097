"""The coordinator's front door: events in, actions out.

It has no clock: ``now`` is in seconds since 1970, as brokers know it too (tokens end by it), and never goes back.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tocsin.balance.placement.placement import Placement
from tocsin.coordinator.actions import Action, Close
from tocsin.coordinator.balancing import Planners
from tocsin.coordinator.departures import remove_subscriber
from tocsin.coordinator.events import Amended, BatchStored, Decided, Event, Link, Lost, Received, SignOfLife, Tick
from tocsin.coordinator.keeping import hold, keep
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.parts import CoordinatorParts
from tocsin.coordinator.reconciliation import reconcile
from tocsin.coordinator.registry import BrokerMember
from tocsin.coordinator.requests import Requests
from tocsin.coordinator.store.records import BrokerRecord, StoredState
from tocsin.coordinator.tokens import new_id
from tocsin.coordinator.view import CoordinatorView
from tocsin.errors import InvalidError
from tocsin.model.coordination import (
    Absent,
    Accepted,
    Arrived,
    FromBroker,
    Hello,
    Keep,
    Load,
    Prepared,
    Presence,
    Progress,
    Refused,
    Release,
    Released,
    Trusted,
    Unprepared,
)
from tocsin.model.subscriber import Held


class CoordinatorCore:
    """Knows who is where, places and moves subscribers, and takes brokers for dead.

    What can go wrong, and what then happens:

    - A broker says something before its ``Hello``, or one that makes no sense: it is refused and its link closed.
    - A broker comes again before its old link is known to be over: the old link is closed.
    - One that was removed goes on talking: nothing of it counts, and its link is closed once its token is not taken.
    - It speaks of a stay that is not its own (any more): it is told to release it.
    - The store is slow or refuses: nothing is said to anybody that rests on what is not stored; see
      :class:`~tocsin.coordinator.outbox.TransactionalOutbox`. Once too much waits for it, requests and subscriptions
      are refused as busy, and nobody is placed or moved.
    - The coordinator itself ends: begin another one with what was stored. Brokers go on meanwhile, and say ``Hello``.

    Args:
        state: what the store has.
        placement: where newcomers go, and those whose broker has died.
        planners: what keeps the loads even.
        new_token_id: what tells the tokens that it signs apart.
    """

    def __init__(
        self,
        state: StoredState,
        now: float,
        placement: Placement,
        planners: Planners,
        limits: CoordinatorLimits | None = None,
        new_token_id: Callable[[], str] = new_id,
    ) -> None:
        self._parts = CoordinatorParts(state, now, placement, planners, limits or CoordinatorLimits(), new_token_id)
        self._requests, self._view = Requests(self._parts), CoordinatorView(self._parts)
        self._dead: dict[str, BrokerMember] = {}
        # What brokers have said so far of a Hello in parts.
        self._greetings: dict[Link, list[Hello]] = {}
        self._doubt = self._parts.detector.wake()

    def handle(self, now: float, event: Event) -> list[Action]:
        """What is to be done about an event."""
        self._parts.preparations.now = now
        # Each case that is not it costs as much as a call, so what comes most often is first.
        match event:
            case Received(link, message):
                self._received(now, link, message)
            case BatchStored(batch):
                self._parts.outbox.stored(batch)
            case SignOfLife(link):
                self._heard(now, link)
            case Tick():
                self._tick(now)
            case Lost(link):
                self._lost(now, link)
                self._doubt = self._parts.detector.wake()
            case Amended(keyring, names):
                self._amended(now, keyring, names)
            case Decided():
                self._parts.rounds.decided(event)
            case _:
                self._requests.handle(now, event)
                self._doubt = self._parts.detector.wake()
        self._go_on(now)
        return self._parts.outbox.flush()

    @property
    def problems(self) -> list[str]:
        """Sentences for an operator, none when all is well."""
        return self._parts.registry.problems()

    @property
    def view(self) -> CoordinatorView:
        """What it knows; only to be looked at."""
        return self._view

    def hold(self, subscriber: str, held: Held) -> None:
        """As if its broker had said that somebody has a subscription; it is stored with what comes next."""
        hold(self._parts, subscriber, held)

    def wake(self) -> float:
        """When a ``Tick`` is wanted, unless something else happens before."""
        parts = self._parts
        return min(
            parts.next_look,
            self._doubt,
            parts.moves.wake(),
            parts.placement.wake(),
            parts.plans.wake(),
            parts.repair.wake(),
            parts.preparations.wake(),
            parts.presence.wake(),
        )

    def _tick(self, now: float) -> None:
        parts = self._parts
        for member in parts.detector.declare_dead(now):
            self._fallen(now, member)
        parts.moves.expire(now)
        parts.repair.send(now)
        parts.preparations.expire()
        parts.presence.due(now)
        for subscriber in parts.presence.next_expired(now):
            remove_subscriber(parts, now, subscriber)
        if now >= parts.next_look:
            parts.next_look = now + parts.limits.interval
            if not parts.plans:
                parts.rounds.look(now, parts.balancing)
        # What is heard meanwhile only puts it off: looking at every broker then would take longer than all else.
        self._doubt = parts.detector.wake()

    def _go_on(self, now: float) -> None:
        """What became possible with this event."""
        parts = self._parts
        if parts.moves.ended:
            self._conclude_moves(now)
        if not parts.outbox.full:
            parts.placement.advance(now)
            parts.plans.advance(now)
        for member in [*self._dead.values()] if self._dead else ():
            if member.dead and parts.registry.knows(member):
                parts.workload.close(member.name)
            else:
                del self._dead[member.name]

    def _conclude_moves(self, now: float) -> None:
        parts = self._parts
        ended, parts.moves.ended = parts.moves.ended, []
        for end in ended:
            assignment = parts.assignments.get(end.subscriber)
            if end.placed:
                # No move: it neither puts the next plan off nor holds the newcomer where it is.
                continue
            if end.settled:
                parts.moves_made += 1
                parts.rounds.settled(end.subscriber)
            elif assignment.broker is not None and not parts.registry.alive(assignment.broker):
                parts.placement.postpone(now, end.subscriber)

    def _fallen(self, now: float, member: BrokerMember) -> None:
        parts = self._parts
        self._dead[member.name] = member
        parts.presence.lost(now, member)
        link = parts.registry.disconnect(member)
        parts.preparations.forget(member.name)
        if link is not None:
            parts.outbox.say(Close(link))
        parts.plans.drop()
        parts.moves.fallen(member.name)
        for assignment in parts.assignments.on(member.name):
            parts.placement.shelter(assignment.subscriber)

    def _heard(self, now: float, link: Link) -> None:
        member = self._parts.registry.at(link)
        if member is not None:
            self._parts.detector.heard(now, member)

    def _lost(self, now: float, link: Link) -> None:
        self._greetings.pop(link, None)
        self._parts.registry.dismissed.pop(link, None)
        member = self._parts.registry.at(link)
        if member is not None:
            self._parts.presence.lost(now, member)
            self._parts.registry.disconnect(member)
            self._parts.preparations.forget(member.name)
            self._parts.detector.lost(now, member)

    def _received(self, now: float, link: Link, message: FromBroker) -> None:
        if link in self._parts.registry.dismissed:
            return
        member = self._parts.registry.at(link)
        if member is not None:
            self._parts.detector.heard(now, member)
        if isinstance(message, Hello):
            if member is not None and member.name != message.broker:
                self._refuse(now, link, f"this is the link of {member.name}; {message.broker} needs its own")
            elif whole := self._join_hello(link, message):
                self._hello(now, link, whole)
        elif member is None:
            self._refuse(now, link, "the first message must be hello")
        else:
            self._told(now, link, member, message)

    def _join_hello(self, link: Link, part: Hello) -> Hello | None:
        """All that a broker says of itself, with the last part of it."""
        said = [*self._greetings.pop(link, ()), part]
        if part.more:
            self._greetings[link] = said
            return None
        serving = [stay for each in said for stay in each.serving]
        return replace(part, serving=serving, prepared=[stay for each in said for stay in each.prepared])

    def _hello(self, now: float, link: Link, hello: Hello) -> None:
        parts, record = self._parts, BrokerRecord(hello.broker, hello.url, hello.capacity, hello.location)
        try:
            parts.workload.open(record)
        except InvalidError as error:
            self._refuse(now, link, str(error))
            return
        member = parts.registry.put(record, now)
        if member.dead or member.joining:
            parts.plans.drop()
        parts.preparations.forget(member.name)
        parts.presence.lost(now, member)
        before = parts.registry.connect(member, link)
        if before not in (None, link):
            parts.outbox.say(Close(before))
        parts.detector.heard(now, member)
        self._doubt = parts.detector.wake()
        parts.outbox.send(link, Accepted(parts.keyring.trust, parts.limits.presence))
        reconcile(parts, now, member, hello)

    def _amended(self, now: float, keyring: Keyring, names: tuple[tuple[str, int], ...]) -> None:
        parts, before = self._parts, self._parts.keyring.trust
        parts.trust(keyring)
        for name, registration in names:
            known = parts.assignments.get(name)
            # What is read from the store may be older than what was done since: only another person is one more.
            if name not in parts.assignments and not (known.gone and registration <= known.registration):
                parts.assignments.register(name, now, registration)
                parts.presence.registered(now, name)
        for link in parts.registry.dismissed:
            # By now the server takes no token of theirs, so that they cannot come again at once.
            parts.outbox.say(Close(link))
        links = [member.link for member in parts.registry if member.link is not None]
        for link in links if keyring.trust != before else ():
            parts.outbox.send(link, Trusted(keyring.trust))

    def _refuse(self, now: float, link: Link, reason: str) -> None:
        self._lost(now, link)
        self._doubt = self._parts.detector.wake()
        self._parts.outbox.send(link, Refused("invalid", reason))
        self._parts.outbox.say(Close(link))

    def _told(self, now: float, link: Link, member: BrokerMember, message: FromBroker) -> None:
        parts = self._parts
        match message:
            case Load():
                member.load, member.reported = message, now
                parts.workload.rate(message.rates)
                member.deviation.report(now, message, *parts.workload.planned_load(member.name))
            case Presence(online, offline):
                parts.presence.connected(now, member, online)
                parts.presence.disconnected(now, member, offline)
            case Progress(cursors):
                for subscriber, theirs in cursors.items():
                    parts.assignments.advance(subscriber, theirs, member.name)
            case Released(subscriber, _, theirs):
                parts.assignments.advance(subscriber, theirs, member.name)
                if parts.assignments.get(subscriber).broker != member.name:
                    parts.presence.disconnected(now, member, [subscriber])
            case Keep():
                keep(self._parts, now, link, member, message)
            case Prepared() | Unprepared() | Absent() | Arrived():
                self._moved(now, link, member, message)

    def _moved(
        self, now: float, link: Link, member: BrokerMember, message: Prepared | Unprepared | Absent | Arrived
    ) -> None:
        moves, subscriber, stay = self._parts.moves, message.subscriber, message.stay
        if isinstance(message, Prepared | Unprepared):
            self._parts.preparations.answered(member.name, subscriber, stay)
        if not self._parts.assignments.belongs(subscriber, stay, member.name):
            self._parts.outbox.send(link, Release(subscriber, stay))
            return
        match message:
            case Prepared():
                if stay == self._parts.assignments.get(subscriber).stay:
                    self._parts.repair.answered(subscriber)
                moves.prepared(now, subscriber, stay)
            case Unprepared(reason=reason):
                if stay == self._parts.assignments.get(subscriber).stay:
                    self._parts.repair.add(now, subscriber, stay)
                moves.unprepared(subscriber, stay, reason)
            case Absent():
                moves.absent(subscriber, stay)
            case Arrived():
                self._parts.presence.arrived(now, subscriber)
                moves.arrived(subscriber, stay)

"""The coordinator's front door: events in, actions out.

It has no clock: ``now`` is in seconds since 1970, as brokers know it too (tokens end by it), and never goes back.
"""

from __future__ import annotations

from msgspec.structs import replace

from tocsin.balance.placement.placement import Placement
from tocsin.coordinator.actions import Action, Close, Send
from tocsin.coordinator.arrivals import reconcile
from tocsin.coordinator.departures import remove_subscriber
from tocsin.coordinator.events import Amended, Decided, Event, Heard, Link, Lost, Received, Stored, Tick
from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.limits import Limits
from tocsin.coordinator.registry import Member
from tocsin.coordinator.requests import BEHIND, Requests
from tocsin.coordinator.rooms import Rooms
from tocsin.coordinator.rounds import Planners
from tocsin.coordinator.store.records import Broker, State
from tocsin.errors import InvalidError
from tocsin.model.coordination import (
    Absent,
    Accepted,
    Arrived,
    FromBroker,
    Hello,
    Keep,
    Kept,
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
from tocsin.model.subscriber import is_same


class Coordinator:
    """Knows who is where, places and moves subscribers, and takes brokers for dead.

    What can go wrong, and what then happens:

    - A broker says something before its ``Hello``, or one that makes no sense: it is refused and its link closed.
    - A broker comes again before its old link is known to be over: the old link is closed.
    - One that was removed goes on talking: nothing of it counts, and its link is closed once its token is not taken.
    - It speaks of a stay that is not its own (any more): it is told to release it.
    - The store is slow or refuses: nothing is said to anybody that rests on what is not stored; see :class:`Store`.
      Once too much waits for it, requests and subscriptions are refused as busy, and nobody is placed or moved.
    - The coordinator itself ends: begin another one with what was stored. Brokers go on meanwhile, and say ``Hello``.

    Args:
        state: what the store has.
        placement: where newcomers go, and those whose broker has died.
        planners: what keeps the loads even.
    """

    def __init__(
        self, state: State, now: float, placement: Placement, planners: Planners, limits: Limits | None = None
    ) -> None:
        self._rooms = Rooms(state, now, placement, planners, limits or Limits())
        self._requests = Requests(self._rooms)
        self._dead: dict[str, Member] = {}
        # What brokers have said so far of a Hello in parts.
        self._greetings: dict[Link, list[Hello]] = {}
        self._doubt = self._rooms.detector.wake()

    def handle(self, now: float, event: Event) -> list[Action]:
        """What is to be done about an event."""
        self._rooms.preparations.now = now
        match event:
            case Tick():
                self._tick(now)
            case Received(link, message):
                self._received(now, link, message)
            case Heard(link):
                self._heard(now, link)
            case Lost(link):
                self._lost(now, link)
                self._doubt = self._rooms.detector.wake()
            case Stored(batch):
                self._rooms.ledger.stored(batch)
            case Amended(keyring, names):
                self._amended(now, keyring, names)
            case Decided():
                self._rooms.rounds.decided(event)
            case _:
                self._requests.handle(now, event)
                self._doubt = self._rooms.detector.wake()
        self._go_on(now)
        return self._rooms.ledger.flush()

    @property
    def problems(self) -> list[str]:
        """Sentences for an operator, none when all is well."""
        return self._rooms.registry.problems()

    def wake(self) -> float | None:
        """When a ``Tick`` is wanted, unless something else happens before."""
        rooms = self._rooms
        times = (
            rooms.moves.wake(),
            rooms.placing.wake(),
            rooms.plans.wake(),
            rooms.reminders.wake(),
            rooms.preparations.wake(),
            rooms.attendance.wake(),
        )
        return min([rooms.next_look, self._doubt, *[time for time in times if time is not None]])

    def _tick(self, now: float) -> None:
        rooms = self._rooms
        for member in rooms.detector.fallen(now):
            self._fallen(now, member)
        rooms.moves.expire(now)
        rooms.reminders.send(now)
        rooms.preparations.expire()
        rooms.attendance.due(now)
        for subscriber in rooms.attendance.expired(now):
            remove_subscriber(rooms, now, subscriber)
        if now >= rooms.next_look:
            rooms.next_look = now + rooms.limits.interval
            if not rooms.plans:
                rooms.rounds.look(now, rooms.balancing)
        # What is heard meanwhile only puts it off: looking at every broker then would take longer than all else.
        self._doubt = rooms.detector.wake()

    def _go_on(self, now: float) -> None:
        """What became possible with this event."""
        rooms = self._rooms
        ended, rooms.moves.ended = rooms.moves.ended, []
        for end in ended:
            place = rooms.places.get(end.subscriber)
            if end.placed:
                # No move: it neither puts the next plan off nor holds the newcomer where it is.
                continue
            if end.settled:
                rooms.moved += 1
                rooms.rounds.settled(end.subscriber)
            elif place.broker is not None and not rooms.registry.alive(place.broker):
                rooms.placing.postpone(now, end.subscriber)
        if not rooms.ledger.full:
            rooms.placing.advance(now)
            rooms.plans.advance(now)
        for member in [*self._dead.values()] if self._dead else ():
            if member.dead and rooms.registry.knows(member):
                rooms.loads.close(member.name)
            else:
                del self._dead[member.name]

    def _fallen(self, now: float, member: Member) -> None:
        rooms = self._rooms
        self._dead[member.name] = member
        rooms.attendance.lost(now, member)
        link = rooms.registry.disconnect(member)
        rooms.preparations.forget(member.name)
        if link is not None:
            rooms.ledger.say(Close(link))
        rooms.plans.drop()
        rooms.moves.fallen(member.name)
        for place in rooms.places.on(member.name):
            rooms.placing.shelter(place.subscriber)

    def _heard(self, now: float, link: Link) -> None:
        member = self._rooms.registry.at(link)
        if member is not None:
            self._rooms.detector.heard(now, member)

    def _lost(self, now: float, link: Link) -> None:
        self._greetings.pop(link, None)
        self._rooms.registry.dismissed.pop(link, None)
        member = self._rooms.registry.at(link)
        if member is not None:
            self._rooms.attendance.lost(now, member)
            self._rooms.registry.disconnect(member)
            self._rooms.preparations.forget(member.name)
            self._rooms.detector.lost(now, member)

    def _received(self, now: float, link: Link, message: FromBroker) -> None:
        if link in self._rooms.registry.dismissed:
            return
        member = self._rooms.registry.at(link)
        if member is not None:
            self._rooms.detector.heard(now, member)
        if isinstance(message, Hello):
            if member is not None and member.name != message.broker:
                self._refuse(now, link, f"this is the link of {member.name}; {message.broker} needs its own")
            elif whole := self._greeted(link, message):
                self._hello(now, link, whole)
        elif member is None:
            self._refuse(now, link, "the first message must be hello")
        else:
            self._told(now, link, member, message)

    def _greeted(self, link: Link, part: Hello) -> Hello | None:
        """All that a broker says of itself, with the last part of it."""
        said = [*self._greetings.pop(link, ()), part]
        if part.more:
            self._greetings[link] = said
            return None
        serving = [stay for each in said for stay in each.serving]
        return replace(part, serving=serving, prepared=[stay for each in said for stay in each.prepared])

    def _hello(self, now: float, link: Link, hello: Hello) -> None:
        rooms, record = self._rooms, Broker(hello.broker, hello.url, hello.capacity, hello.place)
        try:
            rooms.loads.open(record)
        except InvalidError as error:
            self._refuse(now, link, str(error))
            return
        member = rooms.registry.put(record, now)
        if member.dead or member.joining:
            rooms.plans.drop()
        rooms.preparations.forget(member.name)
        rooms.attendance.lost(now, member)
        before = rooms.registry.connect(member, link)
        if before not in (None, link):
            rooms.ledger.say(Close(before))
        rooms.detector.heard(now, member)
        self._doubt = rooms.detector.wake()
        rooms.ledger.send(link, Accepted(rooms.keyring.trust, rooms.limits.presence))
        reconcile(rooms, now, member, hello)

    def _amended(self, now: float, keyring: Keyring, names: tuple[tuple[str, int], ...]) -> None:
        rooms, before = self._rooms, self._rooms.keyring.trust
        rooms.trust(keyring)
        for name, registration in names:
            known = rooms.places.get(name)
            # What is read from the store may be older than what was done since: only another person is one more.
            if name not in rooms.places and not (known.gone and registration <= known.registration):
                rooms.places.register(name, now, registration)
                rooms.attendance.heard(now, name)
        for link in rooms.registry.dismissed:
            # By now the server takes no token of theirs, so that they cannot come again at once.
            rooms.ledger.say(Close(link))
        links = [member.link for member in rooms.registry if member.link is not None]
        for link in links if keyring.trust != before else ():
            rooms.ledger.send(link, Trusted(keyring.trust))

    def _refuse(self, now: float, link: Link, reason: str) -> None:
        self._lost(now, link)
        self._doubt = self._rooms.detector.wake()
        self._rooms.ledger.send(link, Refused("invalid", reason))
        self._rooms.ledger.say(Close(link))

    def _told(self, now: float, link: Link, member: Member, message: FromBroker) -> None:
        rooms = self._rooms
        match message:
            case Load():
                member.load, member.reported = message, now
                rooms.loads.rate(message.rates)
                member.deviation.report(now, message, *rooms.loads.planned(member.name))
            case Presence(online, offline):
                rooms.attendance.connected(now, member, online)
                rooms.attendance.disconnected(now, member, offline)
            case Progress(cursors):
                for subscriber, theirs in cursors.items():
                    rooms.places.advance(subscriber, theirs, member.name)
            case Released(subscriber, _, theirs):
                rooms.places.advance(subscriber, theirs, member.name)
                if rooms.places.get(subscriber).broker != member.name:
                    rooms.attendance.disconnected(now, member, [subscriber])
            case Keep():
                self._keep(now, link, member, message)
            case Prepared() | Unprepared() | Absent() | Arrived():
                self._moved(now, link, member, message)

    def _keep(self, now: float, link: Link, member: Member, keep: Keep) -> None:
        rooms = self._rooms
        if not rooms.places.belongs(keep.subscriber, keep.stay, member.name):
            reason = f"{keep.subscriber} is no longer on {member.name}; it must ask again where it is now"
            rooms.ledger.send(link, Refused("elsewhere", reason, {"ref": keep.ref}))
            rooms.ledger.send(link, Release(keep.subscriber, keep.stay))
            return
        if rooms.ledger.full:
            rooms.ledger.say_now(Send(link, Refused("busy", BEHIND, {"ref": keep.ref})))
            return
        if keep.unasked:
            self._correct(keep)
        else:
            self._change(keep)
            # Whoever subscribes there has arrived, even if the broker's word of it was lost.
            rooms.moves.arrived(keep.subscriber, keep.stay)
        move = rooms.moves.get(keep.subscriber)
        if move is not None:
            rooms.moves.changed(now, move, link, keep.ref)
        else:
            rooms.ledger.send(link, Kept(keep.ref))

    def _change(self, keep: Keep) -> None:
        """A subscriber makes a subscription or gives it up, under whatever number it is stored."""
        number = keep.held.subscription
        others = (*keep.was, *self._namesakes(keep))
        for stored in (number, *others) if keep.gone else others:
            self._drop(keep.subscriber, stored)
        if not keep.gone:
            self._hold(keep)

    def _namesakes(self, keep: Keep) -> list[int]:
        """The other numbers of the same subscription: another broker may have had the one stored that it is to have."""
        stored = self._rooms.places.held(keep.subscriber)
        same = [each.subscription for each in stored if is_same(each, keep.held)]
        return [number for number in same if number != keep.held.subscription]

    def _hold(self, keep: Keep) -> None:
        if self._rooms.places.hold(keep.subscriber, keep.held):
            self._rooms.loads.hold(keep.subscriber, keep.held.subscription)

    def _drop(self, subscriber: str, number: int) -> None:
        if self._rooms.places.drop(subscriber, number):
            self._rooms.loads.drop(subscriber, number)

    def _correct(self, keep: Keep) -> None:
        """What is stored is otherwise; what the subscriber has given up meanwhile stays given up."""
        name, number = keep.subscriber, keep.held.subscription
        meant = {*keep.was} if keep.gone and keep.was else {number, *keep.was}
        held = meant & {each.subscription for each in self._rooms.places.held(name)}
        for other in sorted(held if keep.gone else held - {number}):
            self._drop(name, other)
        for other in self._namesakes(keep) if held and not keep.gone else ():
            self._drop(name, other)
        if held and not keep.gone:
            self._hold(keep)

    def _moved(self, now: float, link: Link, member: Member, message: Prepared | Unprepared | Absent | Arrived) -> None:
        moves, subscriber, stay = self._rooms.moves, message.subscriber, message.stay
        if isinstance(message, Prepared | Unprepared):
            self._rooms.preparations.answered(member.name, subscriber, stay)
        if not self._rooms.places.belongs(subscriber, stay, member.name):
            self._rooms.ledger.send(link, Release(subscriber, stay))
            return
        match message:
            case Prepared():
                if stay == self._rooms.places.get(subscriber).stay:
                    self._rooms.reminders.answered(subscriber)
                moves.prepared(now, subscriber, stay)
            case Unprepared(reason=reason):
                if stay == self._rooms.places.get(subscriber).stay:
                    self._rooms.reminders.add(now, subscriber, stay)
                moves.unprepared(subscriber, stay, reason)
            case Absent():
                moves.absent(subscriber, stay)
            case Arrived():
                self._rooms.attendance.heard(now, subscriber)
                moves.arrived(subscriber, stay)

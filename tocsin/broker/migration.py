"""Who stays here: the broker's part in moving subscribers without a gap.

A stay is prepared (its BE subscriptions attached, so that nothing new is missed), begins to be served with the first
login, and ends when the coordinator releases it. Until then a subscriber told to move is served as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from tocsin.broker.attachments import Attachments, ClaimedBackends
from tocsin.broker.catchup import Catchup
from tocsin.broker.corrections import Corrections
from tocsin.broker.demand import Demand
from tocsin.broker.holdings import BackendSubscription, FrontendSubscription, Holdings, Stay
from tocsin.broker.outbox import CoordinatorMessages, Outbox
from tocsin.broker.renewals import GONE, is_gone, is_outdated
from tocsin.broker.reports import Reports
from tocsin.broker.sessions import Sessions
from tocsin.broker.subscriptions import SubscriptionRequests
from tocsin.model import control, subscriber
from tocsin.model.coordination import Absent, Arrived, Handover, Prepare, Prepared, Release, Released, Unprepared
from tocsin.model.histories import Cursor, resolve, to_wire
from tocsin.model.parts import parts, size
from tocsin.model.subscriber import Code, Cursors, Held


@dataclass(eq=False)
class Preparation:
    """A Prepare under way, with the BE subscriptions claimed so far.

    ``before`` are the numbers of what was held when it came, and ``changing`` is what was being made, given up or
    confirmed once more: what becomes of these here meanwhile, it does not know of. ``missing`` answers are yet to come.
    What has ``ended`` is not to be had any more.
    """

    prepare: Prepare
    missing: int
    before: set[int]
    changing: set[BackendSubscription]
    backends: list[tuple[Held, BackendSubscription]] = field(default_factory=list)
    ended: list[Held] = field(default_factory=list)
    error: str | None = None


class Migration:
    """Prepare, Handover and Release.

    What can go wrong: a BE subscription cannot be attached in time (Unprepared), or not any more (the subscription has
    ended, and nobody is kept from the others for that), a message is late (a lower stay than the one here: a Prepare is
    ignored, a Release answered with nothing) or said again (answered again; a repeated Prepare brings what was
    subscribed to or given up elsewhere meanwhile), the subscriber is not connected (Absent), an earlier stay was never
    released (it ends when the next is prepared).
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        coordinator: CoordinatorMessages,
        attachments: Attachments,
        requests: SubscriptionRequests,
        corrections: Corrections,
        catchup: Catchup,
        sessions: Sessions,
        reports: Reports,
        demand: Demand,
    ) -> None:
        self._holdings, self._outbox, self._coordinator = holdings, outbox, coordinator
        self._attachments, self._requests, self._catchup = attachments, requests, catchup
        self._corrections, self._sessions, self._reports = corrections, sessions, reports
        self._demand = demand
        self._preparing: dict[str, Preparation] = {}
        # What was told so far of those whose Prepare comes in parts.
        self._told: dict[tuple[str, int], list[Held]] = {}

    def connected(self) -> None:
        """The coordinator begins everything anew."""
        self._told.clear()

    def prepare(self, part: Prepare) -> None:
        """Answered with Prepared or Unprepared, once all parts are there."""
        told = [*self._told.pop((part.subscriber, part.stay), ()), *part.subscriptions]
        if part.more:
            self._told[part.subscriber, part.stay] = told
        else:
            self._prepare(replace(part, subscriptions=told))

    def _prepare(self, prepare: Prepare) -> None:
        stay = self._holdings.stays.get(prepare.subscriber)
        if stay and stay.number > prepare.stay:
            return
        if stay and stay.number < prepare.stay:
            self._end(stay)
        channels: dict[str, list[Held]] = {}
        here = self._holdings.stays.get(prepare.subscriber)
        wanted = [held for held in prepare.subscriptions if not (here and self._ending(here, held))]
        for held in wanted:
            channels.setdefault(held.channel, []).append(held)
        if here:
            here.told = {held.subscription: Cursor(held.cursor, held.incarnation) for held in wanted}
        asked = [part for held in channels.values() for part in parts(held, _weight)]
        before, changing = (here.numbers, self._requests.changing(here)) if here else (set(), set())
        preparation = self._preparing[prepare.subscriber] = Preparation(prepare, len(asked), before, changing)
        for part in asked:
            self._attach(preparation, part)
        if not channels:
            self._settle(preparation)

    def handover(self, handover: Handover) -> None:
        """Tells the subscriber, or the coordinator that it is not here."""
        stay = self._holdings.stays.get(handover.subscriber)
        if stay and stay.number == handover.stay and stay.session:
            self._outbox.reply(stay.session, subscriber.Moved(handover.url))
        else:
            self._coordinator.tell(Absent(handover.subscriber, handover.stay))

    def release(self, release: Release) -> None:
        """Lets a subscriber go; answered with Released, also if it is not here."""
        preparation = self._preparing.get(release.subscriber)
        if preparation and preparation.prepare.stay == release.stay:
            del self._preparing[release.subscriber]
        stay = self._holdings.stays.get(release.subscriber)
        if stay and stay.number == release.stay:
            self._end(stay)
        else:
            self._coordinator.tell(Released(release.subscriber, release.stay))

    def _attach(self, preparation: Preparation, wanted: list[Held]) -> None:
        """Asks for subscriptions to one channel."""
        then = partial(self._attached, preparation, wanted)
        parameters, known = [held.parameters for held in wanted], {held.incarnation for held in wanted}
        furthest = max(wanted, key=lambda held: held.cursor)
        had = Cursor(furthest.cursor, furthest.incarnation) if furthest.incarnation else None
        self._attachments.attach(wanted[0].channel, parameters, then, known=known, had=had)

    def _attached(self, preparation: Preparation, wanted: list[Held], outcome: ClaimedBackends | control.Error) -> None:
        preparation.missing -= 1
        if not isinstance(outcome, control.Error):
            preparation.backends += zip(wanted, outcome.backends, strict=True)
        elif outcome.code == "not-found":
            preparation.backends += [(held, self._attachments.hold_missing(held)) for held in wanted]
        elif outcome.code == GONE or (len(wanted) == 1 and outcome.code == "invalid"):
            preparation.ended += wanted
        elif outcome.code == "invalid":
            # One that is refused must not keep the others away.
            preparation.missing += len(wanted)
            for held in wanted:
                self._attach(preparation, [held])
        else:
            preparation.error = outcome.message
        if not preparation.missing:
            self._settle(preparation)

    def _settle(self, preparation: Preparation) -> None:
        """All answers are there."""
        name, number = preparation.prepare.subscriber, preparation.prepare.stay
        if self._preparing.get(name) is preparation:
            del self._preparing[name]
            if preparation.error is None:
                self._ready(name, number, preparation)
            else:
                self._coordinator.tell(Unprepared(name, number, preparation.error))
        for _, backend in preparation.backends:
            self._attachments.release(backend)

    def _ready(self, name: str, number: int, preparation: Preparation) -> None:
        stay = self._holdings.stays.setdefault(name, Stay(name, number))
        stay.registration = preparation.prepare.registration
        if not stay.arrived:
            self._demand.expect(stay)
        alive = [
            (held, backend.present)
            for held, backend in preparation.backends
            if not self._has_ended(held, backend.present)
        ]
        wanted = {backend.be: (held, backend) for held, backend in alive}
        changing = {backend.present.be for backend in preparation.changing | self._requests.changing(stay)}
        before = set(stay.subscriptions)
        for be in list(stay.subscriptions | wanted):
            # One that is being made or given up here becomes what it is to be when the coordinator has stored it; of
            # all others it knows best.
            held, backend = wanted.get(be, (None, None))
            numbers = {be} if held is None else {be, held.subscription}
            known = (be in stay.subscriptions) == bool(numbers & preparation.before)
            if known and be not in changing:
                self._adopt(stay, be, held, backend)
        if stay.session and before - set(stay.subscriptions):
            # The subscriber has been told that it has these. It may not know that they have ended: it will ask.
            self._sessions.end(stay.session, Code.OUTDATED, "what is held is not what was said; log in again")
        for held, backend in preparation.backends:
            self._correct(stay, held, backend.present)
        for held in preparation.ended:
            self._corrections.replace(stay, held, None)
        self._coordinator.tell(Prepared(name, number))
        if stay.arrived:
            self._coordinator.tell(Arrived(name, number))

    def _ending(self, stay: Stay, held: Held) -> bool:
        """Whether a subscription is known to be no more, and is not being made again."""
        made = {backend.present.be for backend in self._requests.changing(stay)}
        return held.subscription not in made and self._corrections.ending(stay, held)

    def _adopt(self, stay: Stay, be: int, held: Held | None, backend: BackendSubscription | None) -> None:
        subscription = stay.subscriptions.get(be)
        if subscription and held:
            subscription.live = held.live
            # Who is connected was told where it goes on, or has said so, since it had lost what it had acknowledged.
            if not stay.session:
                _go_further(subscription, Cursor(held.cursor, held.incarnation))
        elif subscription:
            self._requests.remove(subscription)
        elif held and backend:
            self._catchup.start(self._take(stay, held, backend))

    def _take(self, stay: Stay, held: Held, backend: BackendSubscription) -> FrontendSubscription:
        """One that was held elsewhere; if nobody can say what its cursor means at present, that is in doubt."""
        stored = Cursor(held.cursor, held.incarnation)
        subscription = self._requests.add(stay, backend, held.live, max(0, resolve(backend.channel.history, stored)))
        if backend.missing:
            subscription.doubt, backend.channel.doubted = stored, True
        self._demand.resume(backend)
        return subscription

    def _has_ended(self, held: Held, backend: BackendSubscription) -> bool:
        return bool(backend.ended) or (not backend.missing and is_gone(backend.channel, [held.incarnation]))

    def _correct(self, stay: Stay, held: Held, backend: BackendSubscription) -> None:
        """Has the coordinator store what turned out to be otherwise than it knows."""
        if self._has_ended(held, backend):
            self._corrections.replace(stay, held, None)
            return
        subscription = stay.subscriptions.get(backend.be)
        if held.subscription != backend.be:
            stay.renumber(held.subscription, backend.be)
        if subscription and is_outdated(backend.channel.history, held, subscription.held):
            self._corrections.replace(stay, held, subscription.held)

    def _end(self, stay: Stay) -> None:
        cursors: Cursors = {be: to_wire(subscription.cursor) for be, subscription in stay.subscriptions.items()}
        if stay.session:
            self._sessions.end(stay.session, Code.ELSEWHERE, "not served by this broker any more; ask the coordinator")
        for subscription in list(stay.subscriptions.values()):
            self._requests.remove(subscription)
        del self._holdings.stays[stay.subscriber]
        self._requests.forget(stay)
        self._reports.forget(stay.subscriber)
        self._coordinator.tell(Released(stay.subscriber, stay.number, cursors))


def _go_further(subscription: FrontendSubscription, stored: Cursor) -> None:
    """What was acknowledged elsewhere is not given again."""
    cursor = resolve(subscription.backend.channel.history, stored)
    subscription.acknowledged = max(subscription.acknowledged, min(cursor, subscription.newest))


def _weight(held: Held) -> int:
    return size(held.parameters)

"""Subscribing and unsubscribing: done when the coordinator has stored it, so that it outlives this broker.

A subscription is attached first and then kept; until then nothing of it is delivered, and until giving it up is kept
everything is. What was asked while the coordinator was away is asked when it is back, if that is in time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from tocsin.broker.attachments import Attachments, ClaimedBackends
from tocsin.broker.catchup import Catchup
from tocsin.broker.corrections import Corrections
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.holdings import BackendSubscription, FrontendSubscription, Session, Stay, key
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import CoordinatorMessages, Outbox
from tocsin.broker.renewals import GONE, is_gone, is_outdated
from tocsin.errors import InvalidError
from tocsin.model import control, coordination, subscriber
from tocsin.model.bounds import check_parameters
from tocsin.model.histories import Cursor, resolve, since
from tocsin.model.subscriber import Held


@dataclass(eq=False)
class PendingChange:
    """A change on its way into the coordinator's store. Its BE subscription is claimed; ``said`` once it was sent, with
    the other numbers under which the coordinator may have had it."""

    stay: Stay
    backend: BackendSubscription
    held: Held
    gone: bool
    waiters: list[tuple[Session, int]] = field(default_factory=list)
    said: bool = False
    was: tuple[int, ...] = ()


class SubscriptionRequests:
    """Subscribe and Unsubscribe, from request to answer.

    What can go wrong: too many subscriptions (``too-many``), the data cluster refuses (its code), data cluster or
    coordinator do not answer in time (``unavailable``: what the coordinator was told already is still done when it
    answers, so that both always know the same; asking again does no harm), unsubscribing from what is not held
    (``not-found``), the stay ends (the connection is closed), the connection is gone before what it asked for is
    attached (it is not made: nobody would know of it), the channel is dropped meanwhile (``gone``).
    """

    def __init__(
        self,
        outbox: Outbox,
        coordinator: CoordinatorMessages,
        attachments: Attachments,
        corrections: Corrections,
        catchup: Catchup,
        limits: BrokerLimits,
    ) -> None:
        self._outbox, self._coordinator, self._corrections = outbox, coordinator, corrections
        self._attachments, self._catchup, self._limits = attachments, catchup, limits
        self._changes: dict[int, PendingChange] = {}
        self._deadlines: Deadlines[int] = Deadlines(limits.request_seconds)
        self._last = 0
        # What is being attached for a stay, in its words.
        self._asked: dict[Stay, Counter[bytes]] = {}

    def subscribe(self, session: Session, stay: Stay, request: subscriber.Subscribe) -> None:
        """Answered with Subscribed.

        One that is held already is kept once more: a broker the subscriber came from may have had it given up.
        """
        if fault := self._fault(stay, request):
            self._outbox.refuse(session, *fault, request.id)
            return
        self._asked.setdefault(stay, Counter())[key(request.channel, request.parameters)] += 1
        then = partial(self._attached, session, stay, request)
        known = [request.incarnation]
        self._attachments.attach(request.channel, [request.parameters], then, session.bearer, known)

    def unsubscribe(self, session: Session, stay: Stay, request: subscriber.Unsubscribe) -> None:
        """Answered with Unsubscribed."""
        number = stay.renumbered.get(request.subscription, request.subscription)
        subscription = stay.subscriptions.get(number)
        if subscription is None:
            message = f"subscription {request.subscription} is not held; Welcome lists those that are"
            self._outbox.refuse(session, "not-found", message, request.id)
            return
        self._attachments.claim(subscription.backend)
        self._keep(PendingChange(stay, subscription.backend, subscription.held, True, [(session, request.id)]))

    def add(self, stay: Stay, backend: BackendSubscription, live: bool, cursor: int) -> FrontendSubscription:
        """Makes an FE subscription that has had everything up to ``cursor``."""
        subscription = FrontendSubscription(stay, backend, live, cursor, cursor)
        stay.subscriptions[backend.be] = subscription
        backend.subscriptions[subscription] = None
        return subscription

    def remove(self, subscription: FrontendSubscription) -> None:
        """Ends an FE subscription."""
        self._catchup.stop(subscription)
        subscription.stay.told.pop(subscription.backend.be, None)
        del subscription.stay.subscriptions[subscription.backend.be], subscription.backend.subscriptions[subscription]
        self._attachments.linger(subscription.backend)

    def changing(self, stay: Stay) -> set[BackendSubscription]:
        """The BE subscriptions that are being subscribed to or given up."""
        return {change.backend for change in self._changes.values() if change.stay is stay}

    def kept(self, ref: int) -> None:
        """The coordinator has stored a change."""
        change = self._changes.pop(ref, None)
        if change is None:
            return
        self._deadlines.drop(ref)
        self._corrections.overtaken(change.stay, change.held.subscription, change.was, change.gone)
        if change.gone:
            self._end(change)
        else:
            self._begin(change)
        self._attachments.release(change.backend)

    def refused(self, ref: int, code: str, message: str) -> None:
        """The coordinator will not store a change."""
        if change := self._changes.pop(ref, None):
            self._deadlines.drop(ref)
            self._refuse(change, code, message)
            self._attachments.release(change.backend)

    def connected(self) -> None:
        """Says everything again that is not known to be stored."""
        for ref, change in self._changes.items():
            self._say(ref, change)

    def forget(self, stay: Stay) -> None:
        """The stay is over, and so is what was asked during it."""
        for ref in [ref for ref, change in self._changes.items() if change.stay is stay]:
            self._deadlines.drop(ref)
            self._attachments.release(self._changes.pop(ref).backend)
        self._corrections.leave(stay)

    def due(self, now: float) -> None:
        """Refuses what was not stored in time."""
        for ref in self._deadlines.due(now):
            change = self._changes[ref]
            if not change.said:
                del self._changes[ref]
                self._attachments.release(change.backend)
            self._refuse(change, "unavailable", "the coordinator did not answer in time; ask again later")

    def wake(self) -> float:
        """When something is due."""
        return self._deadlines.soonest

    def _attached(
        self, session: Session, stay: Stay, request: subscriber.Subscribe, outcome: ClaimedBackends | control.Error
    ) -> None:
        self._no_longer_asked(stay, key(request.channel, request.parameters))
        if session.closed:
            # Whoever is still there asks again, perhaps for another channel of that name by now.
            for backend in outcome.backends if isinstance(outcome, ClaimedBackends) else ():
                self._attachments.release(backend)
            return
        if isinstance(outcome, control.Error):
            waiting = _missing(stay, request) if outcome.code == "not-found" else None
            if waiting:
                # Held from before, of a channel that the data cluster does not know just now: it goes on when it does.
                self._attachments.claim(waiting.backend)
                self._keep(PendingChange(stay, waiting.backend, waiting.held, False, [(session, request.id)]))
                return
            self._outbox.refuse(session, outcome.code, outcome.message, request.id, outcome.retry_after)
            return
        [backend] = outcome.backends
        if is_gone(backend.channel, [request.incarnation]):
            message = f"channel {backend.channel.name} was dropped, and what is there now is another of that name"
            self._outbox.refuse(session, GONE, message, request.id)
            self._attachments.release(backend)
            return
        held = stay.subscriptions.get(backend.be)
        cursor = held.cursor if held else self._first(session, stay, backend, outcome.execution)
        name, parameters = backend.channel.name, backend.parameters
        wanted = Held(backend.be, name, parameters, cursor.execution, request.live, cursor.incarnation)
        self._keep(PendingChange(stay, backend, wanted, False, [(session, request.id)]))

    def _first(self, session: Session, stay: Stay, backend: BackendSubscription, execution: int) -> Cursor:
        """Where a new subscription begins: the same however often it is asked for before it is stored."""
        making = [each.held for each in self._changes.values() if each.stay is stay and each.backend is backend]
        said = [Cursor(held.cursor, held.incarnation) for held in making]
        said += [known[backend.be] for known in (session.cursors, stay.told) if backend.be in known]
        begun = [max(0, resolve(backend.channel.history, cursor)) for cursor in said]
        return backend.channel.cursor(min([execution, *begun]))

    def _fault(self, stay: Stay, request: subscriber.Subscribe) -> tuple[str, str] | None:
        """Why a subscription cannot be, as far as that is known before anything is asked: a code and a sentence."""
        try:
            check_parameters(request.parameters, self._limits.parameter_bytes)
        except InvalidError as error:
            return error.code, str(error)
        making = [change.backend for change in self._changes.values() if change.stay is stay and not change.gone]
        backends = {backend.be: backend for backend in making} | {
            be: held.backend for be, held in stay.subscriptions.items()
        }
        asked = self._asked.get(stay, Counter()).keys() - {key(request.channel, request.parameters)}
        if len(backends) + len(asked) < self._limits.subscriptions or any(
            _same(one, request) for one in backends.values()
        ):
            return None
        return "too-many", f"at most {self._limits.subscriptions} subscriptions are allowed; give some up first"

    def _no_longer_asked(self, stay: Stay, words: bytes) -> None:
        asked = self._asked[stay]
        asked[words] -= 1
        if not asked[words]:
            del asked[words]
        if not asked:
            del self._asked[stay]

    def _keep(self, change: PendingChange) -> None:
        self._last += 1
        self._changes[self._last] = change
        self._deadlines.set(self._outbox.now, self._last)
        self._say(self._last, change)

    def _say(self, ref: int, change: PendingChange) -> None:
        change.said = change.said or self._coordinator.up
        change.was = self._others(change)
        stay, held = change.stay, change.held
        keep = coordination.Keep(ref, stay.subscriber, stay.number, held, change.gone, was=change.was)
        self._coordinator.tell(keep)

    def _others(self, change: PendingChange) -> tuple[int, ...]:
        """The other numbers under which the coordinator may have what is made or given up."""
        asked, present = change.held.subscription, change.backend.present.be
        known = self._corrections.numbers(change.stay, present)
        return tuple(number for number in (*known, present) if number != asked) if change.gone else known

    def _begin(self, change: PendingChange) -> None:
        held, stay, backend = change.held, change.stay, change.backend.present
        if backend.ended:
            self._refuse(change, GONE, backend.ended)
            self._corrections.replace(stay, held, None)
            return
        subscription = stay.subscriptions.get(backend.be)
        if subscription is None:
            asked = Cursor(held.cursor, held.incarnation)
            known = min(resolve(backend.channel.history, each) for each in (asked, stay.told.get(backend.be, asked)))
            subscription = self.add(stay, backend, held.live, max(0, known))
        subscription.live = held.live
        if is_outdated(backend.channel.history, held, subscription.held):
            self._corrections.replace(stay, held, subscription.held)
        self._answer(subscription, change.waiters)

    def _answer(self, subscription: FrontendSubscription, waiters: list[tuple[Session, int]]) -> None:
        """Says where the subscription goes on, and goes on there.

        What was sent before may have been ignored, if the answer to an earlier request had been lost.
        """
        self._catchup.stop(subscription)
        subscription.sent = subscription.acknowledged
        held, history = subscription.held, subscription.backend.channel.history
        for session, id in waiters:
            said = session.cursors.get(held.subscription)
            told = since(history, said.incarnation) if said and said.incarnation != held.incarnation else []
            self._outbox.reply(session, subscriber.Subscribed(id, held, told))
        self._catchup.start(subscription)

    def _end(self, change: PendingChange) -> None:
        be = change.held.subscription
        if subscription := change.stay.subscriptions.get(change.backend.present.be):
            held = subscription.held
            self.remove(subscription)
            if held.subscription != be:
                self._corrections.replace(change.stay, held, None)
        for session, id in change.waiters:
            self._outbox.reply(session, subscriber.Unsubscribed(id, be))

    def _refuse(self, change: PendingChange, code: str, message: str) -> None:
        for session, id in change.waiters:
            self._outbox.refuse(session, code, message, id)
        change.waiters.clear()


def _missing(stay: Stay, request: subscriber.Subscribe) -> FrontendSubscription | None:
    """What is asked for, if it is held already though its channel is missing."""
    held = [each for each in stay.subscriptions.values() if each.backend.missing and _same(each.backend, request)]
    return held[0] if held else None


def _same(backend: BackendSubscription, request: subscriber.Subscribe) -> bool:
    """Whether a subscription that is held is asked for, in the words of the welcome."""
    same_name = backend.channel.name.casefold() == request.channel.casefold()
    return same_name and backend.parameters == request.parameters

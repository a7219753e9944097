"""Subscribing and unsubscribing: done when the coordinator has stored it, so that it outlives this broker.

A subscription is attached first and then kept; until then nothing of it is delivered, and until giving it up is kept
everything is. What was asked while the coordinator was away is asked when it is back, if that is in time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from tocsin.broker.catchup import Catchup
from tocsin.broker.corrections import Corrections
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.holdings import Holdings, Line, Session, Stay, Subscription, key
from tocsin.broker.limits import Limits
from tocsin.broker.outbox import CoordinatorLink, Outbox
from tocsin.broker.renewals import GONE, gone, outdated
from tocsin.broker.subscriptions import Attachment, Attachments
from tocsin.errors import InvalidError
from tocsin.model import control, coordination, subscriber
from tocsin.model.bounds import check_parameters
from tocsin.model.histories import Cursor, resolve, since
from tocsin.model.subscriber import Held


@dataclass(eq=False)
class Keeping:
    """A change on its way into the coordinator's store. Its line is claimed; ``said`` once it was sent, with the other
    numbers under which the coordinator may have had it."""

    stay: Stay
    line: Line
    held: Held
    gone: bool
    waiters: list[tuple[Session, int]] = field(default_factory=list)
    said: bool = False
    was: tuple[int, ...] = ()


class Requests:
    """Subscribe and Unsubscribe, from request to answer.

    What can go wrong: too many subscriptions (``too-many``), the data cluster refuses (its code), data cluster or
    coordinator do not answer in time (``unavailable``: what the coordinator was told already is still done when it
    answers, so that both always know the same; asking again does no harm), unsubscribing from what is not held
    (``not-found``), the stay ends (the connection is closed), the channel is dropped meanwhile (``gone``).
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        coordinator: CoordinatorLink,
        attachments: Attachments,
        corrections: Corrections,
        catchup: Catchup,
        limits: Limits,
    ) -> None:
        self._holdings, self._outbox, self._coordinator = holdings, outbox, coordinator
        self._corrections = corrections
        self._attachments, self._catchup, self._limits = attachments, catchup, limits
        self._keepings: dict[int, Keeping] = {}
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
        self._attachments.claim(subscription.line)
        self._keep(Keeping(stay, subscription.line, subscription.held, True, [(session, request.id)]))

    def add(self, stay: Stay, line: Line, live: bool, cursor: int) -> Subscription:
        """Makes an FE subscription that has had everything up to ``cursor``."""
        subscription = Subscription(stay, line, live, cursor, cursor)
        stay.subscriptions[line.be] = subscription
        line.subscriptions[subscription] = None
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """Ends an FE subscription."""
        self._catchup.stop(subscription)
        subscription.stay.told.pop(subscription.line.be, None)
        del subscription.stay.subscriptions[subscription.line.be], subscription.line.subscriptions[subscription]
        self._attachments.unused(subscription.line)

    def changing(self, stay: Stay) -> set[Line]:
        """The lines that are being subscribed to or given up."""
        return {keeping.line for keeping in self._keepings.values() if keeping.stay is stay}

    def kept(self, ref: int) -> None:
        """The coordinator has stored a change."""
        keeping = self._keepings.pop(ref, None)
        if keeping is None:
            return
        self._deadlines.drop(ref)
        self._corrections.overtaken(keeping.stay, keeping.held.subscription, keeping.was, keeping.gone)
        if keeping.gone:
            self._end(keeping)
        else:
            self._begin(keeping)
        self._attachments.release(keeping.line)

    def refused(self, ref: int, code: str, message: str) -> None:
        """The coordinator will not store a change."""
        if keeping := self._keepings.pop(ref, None):
            self._deadlines.drop(ref)
            self._refuse(keeping, code, message)
            self._attachments.release(keeping.line)

    def connected(self) -> None:
        """Says everything again that is not known to be stored."""
        for ref, keeping in self._keepings.items():
            self._say(ref, keeping)

    def forget(self, stay: Stay) -> None:
        """The stay is over, and so is what was asked during it."""
        for ref in [ref for ref, keeping in self._keepings.items() if keeping.stay is stay]:
            self._deadlines.drop(ref)
            self._attachments.release(self._keepings.pop(ref).line)
        self._corrections.leave(stay)

    def due(self, now: float) -> None:
        """Refuses what was not stored in time."""
        for ref in self._deadlines.due(now):
            keeping = self._keepings[ref]
            if not keeping.said:
                del self._keepings[ref]
                self._attachments.release(keeping.line)
            self._refuse(keeping, "unavailable", "the coordinator did not answer in time; ask again later")

    def wake(self) -> float:
        """When something is due."""
        return self._deadlines.soonest

    def _attached(
        self, session: Session, stay: Stay, request: subscriber.Subscribe, outcome: Attachment | control.Error
    ) -> None:
        self._no_longer_asked(stay, key(request.channel, request.parameters))
        if isinstance(outcome, control.Error):
            waiting = _missing(stay, request) if outcome.code == "not-found" else None
            if waiting:
                # Held from before, of a channel that the data cluster does not know just now: it goes on when it does.
                self._attachments.claim(waiting.line)
                self._keep(Keeping(stay, waiting.line, waiting.held, False, [(session, request.id)]))
                return
            self._outbox.refuse(session, outcome.code, outcome.message, request.id, outcome.retry_after)
            return
        [line] = outcome.lines
        if gone(line.channel, [request.incarnation]):
            message = f"channel {line.channel.name} was dropped, and what is there now is another of that name"
            self._outbox.refuse(session, GONE, message, request.id)
            self._attachments.release(line)
            return
        held = stay.subscriptions.get(line.be)
        if self._holdings.stays.get(stay.subscriber) is not stay:
            self._attachments.release(line)
        else:
            cursor = held.cursor if held else self._first(session, stay, line, outcome.execution)
            name, parameters = line.channel.name, line.parameters
            wanted = Held(line.be, name, parameters, cursor.execution, request.live, cursor.incarnation)
            self._keep(Keeping(stay, line, wanted, False, [(session, request.id)]))

    def _first(self, session: Session, stay: Stay, line: Line, execution: int) -> Cursor:
        """Where a new subscription begins: the same however often it is asked for before it is stored."""
        making = [each.held for each in self._keepings.values() if each.stay is stay and each.line is line]
        said = [Cursor(held.cursor, held.incarnation) for held in making]
        said += [known[line.be] for known in (session.cursors, stay.told) if line.be in known]
        begun = [max(0, resolve(line.channel.history, cursor)) for cursor in said]
        return line.channel.cursor(min([execution, *begun]))

    def _fault(self, stay: Stay, request: subscriber.Subscribe) -> tuple[str, str] | None:
        """Why a subscription cannot be, as far as that is known before anything is asked: a code and a sentence."""
        try:
            check_parameters(request.parameters, self._limits.parameter_bytes)
        except InvalidError as error:
            return error.code, str(error)
        making = [keeping.line for keeping in self._keepings.values() if keeping.stay is stay and not keeping.gone]
        lines = {line.be: line for line in making} | {be: held.line for be, held in stay.subscriptions.items()}
        asked = self._asked.get(stay, Counter()).keys() - {key(request.channel, request.parameters)}
        if len(lines) + len(asked) < self._limits.subscriptions or any(_same(one, request) for one in lines.values()):
            return None
        return "too-many", f"at most {self._limits.subscriptions} subscriptions are allowed; give some up first"

    def _no_longer_asked(self, stay: Stay, words: bytes) -> None:
        asked = self._asked[stay]
        asked[words] -= 1
        if not asked[words]:
            del asked[words]
        if not asked:
            del self._asked[stay]

    def _keep(self, keeping: Keeping) -> None:
        self._last += 1
        self._keepings[self._last] = keeping
        self._deadlines.set(self._outbox.now, self._last)
        self._say(self._last, keeping)

    def _say(self, ref: int, keeping: Keeping) -> None:
        keeping.said = keeping.said or self._coordinator.up
        keeping.was = self._others(keeping)
        stay, held = keeping.stay, keeping.held
        keep = coordination.Keep(ref, stay.subscriber, stay.number, held, keeping.gone, was=keeping.was)
        self._coordinator.tell(keep)

    def _others(self, keeping: Keeping) -> tuple[int, ...]:
        """The other numbers under which the coordinator may have what is made or given up."""
        asked, present = keeping.held.subscription, keeping.line.present.be
        known = self._corrections.numbers(keeping.stay, present)
        return tuple(number for number in (*known, present) if number != asked) if keeping.gone else known

    def _begin(self, keeping: Keeping) -> None:
        held, stay, line = keeping.held, keeping.stay, keeping.line.present
        if line.ended:
            self._refuse(keeping, GONE, line.ended)
            self._corrections.replace(stay, held, None)
            return
        subscription = stay.subscriptions.get(line.be)
        if subscription is None:
            asked = Cursor(held.cursor, held.incarnation)
            known = min(resolve(line.channel.history, each) for each in (asked, stay.told.get(line.be, asked)))
            subscription = self.add(stay, line, held.live, max(0, known))
        subscription.live = held.live
        if outdated(line.channel.history, held, subscription.held):
            self._corrections.replace(stay, held, subscription.held)
        self._answer(subscription, keeping.waiters)

    def _answer(self, subscription: Subscription, waiters: list[tuple[Session, int]]) -> None:
        """Says where the subscription goes on, and goes on there.

        What was sent before may have been ignored, if the answer to an earlier request had been lost.
        """
        self._catchup.stop(subscription)
        subscription.sent = subscription.acknowledged
        held, history = subscription.held, subscription.line.channel.history
        for session, id in waiters:
            said = session.cursors.get(held.subscription)
            told = since(history, said.incarnation) if said and said.incarnation != held.incarnation else []
            self._outbox.reply(session, subscriber.Subscribed(id, held, told))
        self._catchup.start(subscription)

    def _end(self, keeping: Keeping) -> None:
        be = keeping.held.subscription
        if subscription := keeping.stay.subscriptions.get(keeping.line.present.be):
            held = subscription.held
            self.remove(subscription)
            if held.subscription != be:
                self._corrections.replace(keeping.stay, held, None)
        for session, id in keeping.waiters:
            self._outbox.reply(session, subscriber.Unsubscribed(id, be))

    def _refuse(self, keeping: Keeping, code: str, message: str) -> None:
        for session, id in keeping.waiters:
            self._outbox.refuse(session, code, message, id)
        keeping.waiters.clear()


def _missing(stay: Stay, request: subscriber.Subscribe) -> Subscription | None:
    """What is asked for, if it is held already though its channel is missing."""
    held = [each for each in stay.subscriptions.values() if each.line.missing and _same(each.line, request)]
    return held[0] if held else None


def _same(line: Line, request: subscriber.Subscribe) -> bool:
    """Whether a subscription that is held is asked for, in the words of the welcome."""
    same_name = line.channel.name.casefold() == request.channel.casefold()
    return same_name and line.parameters == request.parameters

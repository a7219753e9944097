"""Many FE subscriptions, one BE subscription: attached with the first, detached a while after the last.

A BE subscription is held while somebody subscribes to it or claims it: whoever got it from :meth:`Attachments.attach`
has a claim and must release it. This is about who asks for one; :mod:`tocsin.broker.reattachments` asks again for what
is held, and :mod:`tocsin.broker.detachments` lets go of what nobody wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tocsin.broker.accounting import DataRate
from tocsin.broker.cache import ResultCache
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.detachments import Detachments
from tocsin.broker.holdings import BackendSubscription, HeldChannel, Holdings, key
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import DataRequests, Outbox, Reply
from tocsin.broker.reattachments import Reattachments
from tocsin.broker.renewals import Renewals
from tocsin.broker.wording import Wording
from tocsin.errors import ForbiddenError
from tocsin.model import control
from tocsin.model.histories import Cursor, knows
from tocsin.model.subscriber import Held
from tocsin.model.terms import Asker, fill_in


@dataclass(frozen=True)
class ClaimedBackends:
    """Claimed BE subscriptions, in the order asked for; what executions after ``execution`` find is for whoever
    asked."""

    backends: list[BackendSubscription]
    execution: int


Then = Callable[[ClaimedBackends | control.Error], None]


@dataclass(eq=False)
class PendingAttach:
    """An Attach that is not answered yet."""

    channel: str
    parameters: list[dict[str, Any]]
    then: Then
    asker: Asker | None = None
    had: Cursor | None = None


class Attachments:
    """Which BE subscriptions are held.

    What can go wrong: the link is lost (everything held is attached again, every request asked again), the data cluster
    refuses or does not answer in time (whoever asked is told the error), it still counts BE subscriptions to this
    broker that nobody wants (they are detached), it has other data than before (see :class:`Renewals`), or no longer
    what is held (see :class:`Reattachments`).
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        data: DataRequests,
        cache: ResultCache,
        limits: BrokerLimits,
        renewals: Renewals,
        heard: Callable[[HeldChannel], None],
    ) -> None:
        self._holdings, self._outbox, self._data = holdings, outbox, data
        self._cache, self._limits, self._renewals = cache, limits, renewals
        self._wording = Wording(holdings)
        self._detachments = Detachments(holdings, outbox, data, cache, limits, self._is_asked_for)
        self._reattachments = Reattachments(holdings, outbox, data, limits, renewals, self._detachments, heard)
        self._deadlines: Deadlines[PendingAttach] = Deadlines(limits.request_seconds)
        self._waiting: dict[PendingAttach, None] = {}

    def attach(
        self,
        channel: str,
        parameters: list[dict[str, Any]],
        then: Then,
        asker: Asker | None = None,
        known: Iterable[str] = (),
        had: Cursor | None = None,
    ) -> None:
        """Gets BE subscriptions, at once if all are held and the channel's history knows these incarnations.

        ``asker`` must be one who may use the channel, and has bound parameters filled in; without, the broker itself
        asks for what somebody holds already. ``had`` is an execution that somebody has had of the channel, of which the
        data cluster is told.
        """
        try:
            held = self._wording.find(channel, parameters, asker)
        except ForbiddenError as error:
            then(control.Error(error.code, str(error)))
            return
        backends = [backend for backend in held if backend and not backend.missing]
        if len(backends) == len(held) and all(knows(backends[0].channel.history, one) for one in known if one):
            for backend in backends:
                self.claim(backend)
            then(ClaimedBackends(backends, backends[0].channel.seen))
            return
        pending = PendingAttach(channel, parameters, then, asker, had)
        self._waiting[pending] = None
        self._deadlines.set(self._outbox.now, pending)
        self._ask(pending)

    def claim(self, backend: BackendSubscription) -> None:
        """Keeps a BE subscription held until it is released as often as it was claimed."""
        self._detachments.claim(backend)

    def release(self, backend: BackendSubscription) -> None:
        """Takes a claim back."""
        self._detachments.release(backend)

    def linger(self, backend: BackendSubscription) -> None:
        """Lets a BE subscription go after a while, if nobody wants it."""
        self._detachments.linger(backend)

    def strangers(self, channel: str, bes: list[int]) -> None:
        """The data cluster counts these to this broker, wanted or not."""
        self._detachments.strangers(channel, bes)

    def reattach(self, channel: HeldChannel, backends: list[BackendSubscription] | None = None) -> None:
        """Asks for these BE subscriptions once more, or for all of the channel."""
        self._reattachments.ask(channel, backends)

    def hold_missing(self, held: Held) -> BackendSubscription:
        """A BE subscription that was held elsewhere, of a channel that the data cluster does not know at present;
        claimed."""
        channel = self._holdings.channel(held.channel)
        backend = self._holdings.backends.get(held.subscription)
        if backend is None:
            backend = self._new_backend(channel, held.parameters, held.subscription, 0)
            self._wording.learn(backend, held.channel, held.parameters)
            self._reattachments.miss(channel, [backend])
        self.claim(backend)
        return backend

    def expect(self, channel: str) -> None:
        """Something was executed: that may be what is being asked for, in whatever words."""
        if self._waiting:
            self._holdings.channel(channel)

    def dropped(self, notice: control.Dropped) -> None:
        """A channel is gone."""
        self._renewals.dropped(notice)
        self._detachments.tidy()

    def changed(self, notice: control.Changed) -> None:
        """A channel has other terms now; who has subscribed by those of before keeps the subscription."""
        if channel := self._holdings.channels.get(notice.channel):
            channel.terms = notice.terms

    def connected(self) -> None:
        """Asks for everything again; in this order, because what is to leave may have been wanted again since."""
        self._detachments.connected()
        self._reattachments.connected()
        for pending in self._waiting:
            self._ask(pending)

    def lost(self) -> None:
        """Whatever was asked is not being answered."""
        self._reattachments.lost()

    def due(self, now: float) -> None:
        """Refuses what was not answered in time, detaches what nobody wants, asks again for what is missing."""
        for pending in self._deadlines.due(now):
            self._end(pending, control.Error("unavailable", "the data cluster did not answer in time; try again later"))
        self._detachments.due(now)
        self._reattachments.due(now)

    def wake(self) -> float:
        """When something is due."""
        return min(self._deadlines.soonest, self._detachments.wake(), self._reattachments.wake())

    def _ask(self, pending: PendingAttach) -> None:
        name, groups = (pending.asker.name, pending.asker.groups) if pending.asker else (None, ())
        self._data.ask(
            lambda id: control.Attach(id, pending.channel, pending.parameters, name, groups, pending.had),
            partial(self._answered, pending),
        )

    def _answered(self, pending: PendingAttach, answer: Reply) -> None:
        answer = self._renewals.unless_dropped(answer)
        if pending not in self._waiting:
            if isinstance(answer, control.Attached):
                self.strangers(answer.channel, answer.bes)
            return
        if isinstance(answer, control.Attached):
            channel, asked = self._renewals.learn(answer, self._find_renumbered(answer)), pending.parameters
            self._wording.learn_name(pending.channel, channel.name)
            if pending.asker:
                asked = [fill_in(answer.terms, pending.asker.name, one) for one in asked]
            each = zip(answer.bes, asked, answer.parameters, strict=True)
            backends = [self._backend(channel, pending.channel, *one, answer.execution) for one in each]
            for backend in backends:
                self.claim(backend)
            self._holdings.hear_rates(self._outbox.now, answer.bes, answer.rates, answer.seconds)
            self._end(pending, ClaimedBackends(backends, answer.execution))
        elif isinstance(answer, control.Error):
            self._end(pending, answer)

    def _end(self, pending: PendingAttach, outcome: ClaimedBackends | control.Error) -> None:
        self._waiting.pop(pending, None)
        self._deadlines.drop(pending)
        pending.then(outcome)
        self._detachments.tidy()

    def _find_renumbered(self, answer: control.Attached) -> dict[BackendSubscription, int]:
        """What is held under other numbers than the answer has for it."""
        words = [key(answer.channel, parameters) for parameters in answer.parameters]
        known = [(self._holdings.keys.get(each), be) for each, be in zip(words, answer.bes, strict=True)]
        return {backend: be for backend, be in known if backend and backend.be != be}

    def _backend(
        self,
        channel: HeldChannel,
        name: str,
        be: int,
        asked: dict[str, Any],
        parameters: dict[str, Any],
        execution: int,
    ) -> BackendSubscription:
        backend = self._holdings.backends.get(be) or self._new_backend(channel, parameters, be, execution)
        backend.missing = False
        self._wording.learn(backend, channel.name, parameters)
        self._wording.learn(backend, name, asked)
        return backend

    def _new_backend(
        self, channel: HeldChannel, parameters: dict[str, Any], be: int, execution: int
    ) -> BackendSubscription:
        if not channel.backends:
            channel.seen = max(channel.seen, execution)
            channel.level = channel.seen
        backend = BackendSubscription(be, channel, parameters, DataRate(self._limits.rate_seconds), execution)
        # What was executed but not yet asked for was not for this BE subscription when it was heard of.
        if channel.seen > max(channel.level, channel.pulling):
            channel.wanted[backend] = None
        self._holdings.backends[be] = channel.backends[be] = backend
        self._detachments.held(be)
        self._cache.open(be, backend.horizon)
        return backend

    def _is_asked_for(self, channel: str) -> bool:
        """Whether a request may be for this channel."""
        return any(self._wording.may_mean(pending.channel, channel) for pending in self._waiting)

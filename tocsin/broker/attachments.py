"""Many FE subscriptions, one BE subscription: attached with the first, detached a while after the last.

A BE subscription is held while somebody subscribes to it or claims it: whoever got it from :meth:`Attachments.attach`
has a claim and must release it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tocsin.broker.accounting import DataRate
from tocsin.broker.cache import ResultCache
from tocsin.broker.deadlines import Deadlines
from tocsin.broker.holdings import BackendSubscription, HeldChannel, Holdings, key
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import DataRequests, Outbox, Reply, to_be_repeated
from tocsin.broker.renewals import GONE, Renewals
from tocsin.errors import ForbiddenError
from tocsin.model import control
from tocsin.model.histories import Cursor, knows
from tocsin.model.parts import parts, size
from tocsin.model.subscriber import Held
from tocsin.model.terms import Asker, admit, fill_in

# What a BE subscription adds to a message beyond its parameters, at most; so there are never more than 8,000 in one.
_NUMBER_BYTES: Final = 32
MOST_WORDS: Final = 8
MOST_NAMES: Final = 1000
MOST_DROPPED: Final = 100
# A data cluster that is being set up does not know its channels yet, or one is just being created anew.
_UNCERTAIN: Final = frozenset({"not-found", "conflict"})


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
    broker that nobody wants (they are detached), it has other data than before (see :class:`Renewals`), it does not
    know a channel of which something is held (it is asked again until it does: it may be empty for the moment, and
    nobody is to lose a subscription for that), it will not have a BE subscription again (its subscriptions end).

    Only the data cluster knows how a channel is spelled. What is asked for in other words is asked of it; a few of the
    words that lead to a BE subscription are remembered.
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
        self._cache, self._limits, self._heard, self._renewals = cache, limits, heard, renewals
        self._names: dict[str, str] = {}
        self._asking: dict[HeldChannel, None] = {}
        self._dropped: deque[tuple[str, str]] = deque(maxlen=MOST_DROPPED)
        self._deadlines: Deadlines[PendingAttach] = Deadlines(limits.request_seconds)
        self._waiting: dict[PendingAttach, None] = {}
        self._lingering: Deadlines[BackendSubscription] = Deadlines(limits.linger_seconds)
        self._leaving: dict[int, None] = {}
        self._retries: list[tuple[float, HeldChannel, list[BackendSubscription]]] = []
        self._strange: dict[int, str] = {}
        self._strangers: Deadlines[int] = Deadlines(limits.stranger_seconds)

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
            held = self._find_held(channel, parameters, asker)
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
        backend.claims += 1
        self._lingering.drop(backend)

    def release(self, backend: BackendSubscription) -> None:
        """Takes a claim back."""
        backend.claims -= 1
        self.linger(backend)

    def linger(self, backend: BackendSubscription) -> None:
        """Lets a BE subscription go after a while, if nobody wants it."""
        if not backend.claims and not backend.subscriptions:
            self._lingering.set(self._outbox.now, backend)

    def reattach(self, channel: HeldChannel, backends: list[BackendSubscription] | None = None) -> None:
        """Asks for these BE subscriptions once more, or for all: the data cluster may have another history than is
        known here."""
        wanted = list(channel.backends.values()) if backends is None else backends
        if channel not in self._asking:
            for part in parts(wanted, _weight):
                self._attach_again(channel, part)

    def hold_missing(self, held: Held) -> BackendSubscription:
        """A BE subscription that was held elsewhere, of a channel that the data cluster does not know at present;
        claimed."""
        channel = self._holdings.channel(held.channel)
        backend = self._holdings.backends.get(held.subscription)
        if backend is None:
            backend = self._new_backend(channel, held.parameters, held.subscription, 0)
            backend.missing = True
            self._remember(backend, key(held.channel, held.parameters))
            self._retries.append((self._outbox.now + self._limits.missing_seconds, channel, [backend]))
        self.claim(backend)
        return backend

    def expect(self, channel: str) -> None:
        """Something was executed: that may be what is being asked for, in whatever words."""
        if self._waiting:
            self._holdings.channel(channel)

    def dropped(self, notice: control.Dropped) -> None:
        """A channel is gone; one that was created anew since is another."""
        self._dropped.append((notice.channel, notice.incarnation))
        channel = self._holdings.channels.get(notice.channel)
        if channel and channel.incarnation == notice.incarnation:
            for backend in list(channel.backends.values()):
                self._renewals.end(backend, GONE, f"channel {notice.channel} was dropped")
            self._tidy()

    def changed(self, notice: control.Changed) -> None:
        """A channel has other terms now; who has subscribed by those of before keeps the subscription."""
        if channel := self._holdings.channels.get(notice.channel):
            channel.terms = notice.terms

    def strangers(self, channel: str, bes: list[int]) -> None:
        """Takes note of what the data cluster counts to this broker though nobody here wants it, after a crash say.

        It is not detached soon: those who wanted it may be about to come back, and must not miss what is found.
        """
        for be in bes:
            if be not in self._holdings.backends and be not in self._leaving and be not in self._strange:
                self._strange[be] = channel
                self._strangers.set(self._outbox.now, be)

    def connected(self) -> None:
        """Asks for everything again; in this order, because what is to leave may have been wanted again since."""
        self._retries.clear()
        leaving, self._leaving = list(self._leaving), {}
        self._detach([be for be in leaving if be not in self._holdings.backends])
        for channel in list(self._holdings.channels.values()):
            self.reattach(channel)
        for pending in self._waiting:
            self._ask(pending)

    def lost(self) -> None:
        """Whatever was asked is not being answered."""
        self._asking.clear()

    def due(self, now: float) -> None:
        """Refuses what was not answered in time, and detaches what nobody wants."""
        for pending in self._deadlines.due(now):
            self._end(pending, control.Error("unavailable", "the data cluster did not answer in time; try again later"))
        self._detach([backend.be for backend in list(self._lingering.due(now)) if self._let_go(backend)])
        self._detach([be for be in list(self._strangers.due(now)) if self._forget_stranger(be)])
        retries, self._retries = self._retries, []
        for at, channel, backends in retries:
            if at <= now:
                self._attach_again(
                    channel, [backend for backend in backends if channel.backends.get(backend.be) is backend]
                )
            else:
                self._retries.append((at, channel, backends))

    def wake(self) -> float:
        """When something is due."""
        soonest = min(self._deadlines.soonest, self._lingering.soonest, self._strangers.soonest)
        return min(soonest, *(at for at, _, _ in self._retries)) if self._retries else soonest

    def _find_held(
        self, channel: str, parameters: list[dict[str, Any]], asker: Asker | None
    ) -> list[BackendSubscription | None]:
        """The BE subscriptions for these parameters, as far as they are held; ForbiddenError when it is known who may
        not."""
        known = self._holdings.channels.get(self._names.get(channel, channel))
        if known is None or known.terms is None:
            return [None] * len(parameters)
        if asker is not None:
            admit(known.terms, asker, f"channel {known.name}")
            parameters = [fill_in(known.terms, asker.name, one) for one in parameters]
        return [self._holdings.keys.get(key(channel, one)) for one in parameters]

    def _ask(self, pending: PendingAttach) -> None:
        name, groups = (pending.asker.name, pending.asker.groups) if pending.asker else (None, ())
        self._data.ask(
            lambda id: control.Attach(id, pending.channel, pending.parameters, name, groups, pending.had),
            partial(self._answered, pending),
        )

    def _answered(self, pending: PendingAttach, answer: Reply) -> None:
        answer = self._unless_dropped(answer)
        if pending not in self._waiting:
            if isinstance(answer, control.Attached):
                self.strangers(answer.channel, answer.bes)
            return
        if isinstance(answer, control.Attached):
            channel, asked = self._learn(answer, self._find_renumbered(answer)), pending.parameters
            self._remember_name(pending.channel, channel.name)
            if pending.asker:
                asked = [fill_in(answer.terms, pending.asker.name, one) for one in asked]
            each = zip(answer.bes, asked, answer.parameters, strict=True)
            backends = [self._backend(channel, pending.channel, *one, answer.execution) for one in each]
            for backend in backends:
                self.claim(backend)
            self._hear_rates(answer)
            self._end(pending, ClaimedBackends(backends, answer.execution))
        elif isinstance(answer, control.Error):
            self._end(pending, answer)

    def _unless_dropped(self, answer: Reply) -> Reply:
        """An answer, unless the notice that its channel was dropped has come before it."""
        if isinstance(answer, control.Attached) and (answer.channel, answer.incarnation) in self._dropped:
            return control.Error(GONE, f"channel {answer.channel} was dropped", answer.id)
        return answer

    def _end(self, pending: PendingAttach, outcome: ClaimedBackends | control.Error) -> None:
        self._waiting.pop(pending, None)
        self._deadlines.drop(pending)
        pending.then(outcome)
        self._tidy()

    def _find_renumbered(self, answer: control.Attached) -> dict[BackendSubscription, int]:
        """What is held under other numbers than the answer has for it."""
        words = [key(answer.channel, parameters) for parameters in answer.parameters]
        known = [(self._holdings.keys.get(each), be) for each, be in zip(words, answer.bes, strict=True)]
        return {backend: be for backend, be in known if backend and backend.be != be}

    def _learn(self, answer: control.Attached, numbers: dict[BackendSubscription, int]) -> HeldChannel:
        """The channel that an answer is about, with the history it has now."""
        channel = self._holdings.channel(answer.channel)
        channel.terms = answer.terms
        self._renewals.renew(channel, list(answer.history), numbers)
        return channel

    def _hear_rates(self, answer: control.Attached) -> None:
        self._holdings.hear_rates(self._outbox.now, answer.bes, answer.rates, answer.seconds)

    def _remember_name(self, words: str, name: str) -> None:
        if len(self._names) >= MOST_NAMES:
            self._names.clear()
        self._names[words] = name

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
        self._remember(backend, key(channel.name, parameters))
        self._remember(backend, key(name, asked))
        return backend

    def _remember(self, backend: BackendSubscription, words: bytes) -> None:
        """Whoever asks in these words gets this BE subscription at once."""
        if words not in self._holdings.keys and len(backend.keys) < MOST_WORDS:
            self._holdings.keys[words] = backend
            backend.keys.append(words)

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
        self._leaving.pop(be, None)
        self._cache.open(be, backend.horizon)
        return backend

    def _attach_again(self, channel: HeldChannel, backends: list[BackendSubscription]) -> None:
        parameters = [backend.parameters for backend in backends]
        if not backends or not self._data.up:
            return
        self._asking[channel] = None
        known = channel.cursor(channel.seen) if channel.incarnation else None
        self._data.ask(
            lambda id: control.Attach(id, channel.name, parameters, known=known),
            partial(self._attached_again, channel, backends),
        )

    def _attached_again(self, channel: HeldChannel, backends: list[BackendSubscription], answer: Reply) -> None:
        self._asking.pop(channel, None)
        answer = self._unless_dropped(answer)
        if isinstance(answer, control.Attached):
            self._again(channel, backends, answer)
        elif isinstance(answer, control.Error) and answer.code == GONE:
            for backend in backends:
                self._renewals.end(backend, GONE, answer.message)
            self._tidy()
        elif isinstance(answer, control.Error) and (to_be_repeated(answer) or answer.code in _UNCERTAIN):
            self._later(channel, backends, answer)
        elif len(backends) > 1:
            # One that is refused must not keep the others away.
            middle = len(backends) // 2
            self._attach_again(channel, backends[:middle])
            self._attach_again(channel, backends[middle:])
        elif isinstance(answer, control.Error):
            self._renewals.end(backends[0], answer.code, answer.message)
            self._tidy()

    def _again(self, channel: HeldChannel, backends: list[BackendSubscription], answer: control.Attached) -> None:
        """These BE subscriptions are held, though perhaps not as they were."""
        held = {
            backend: be
            for backend, be in zip(backends, answer.bes, strict=True)
            if channel.backends.get(backend.be) is backend
        }
        for backend, parameters in zip(backends, answer.parameters, strict=True):
            backend.missing, backend.parameters = False, parameters
        if channel.name != answer.channel:
            self._rename(channel, answer.channel)
        channel = self._learn(answer, held)
        self._hear_rates(answer)
        # Also for BE subscriptions attached since: notices up to this execution may still be on their way, and come too
        # late.
        channel.wanted.update((backend, None) for backend in channel.backends.values() if not backend.idle)
        channel.seen = max(channel.seen, answer.execution)
        self._heard(channel)
        self.strangers(channel.name, answer.bes)
        self._tidy()

    def _rename(self, channel: HeldChannel, name: str) -> None:
        """A channel was known in a spelling that is not the data cluster's."""
        del self._holdings.channels[channel.name]
        channel.name = name
        other = self._holdings.channels.setdefault(name, channel)
        if other is not channel:
            for backend in channel.backends.values():
                backend.channel = other
            other.backends.update(channel.backends)
            channel.backends.clear()

    def _later(self, channel: HeldChannel, backends: list[BackendSubscription], error: control.Error) -> None:
        wait = error.retry_after or self._limits.retry_seconds
        if error.code in _UNCERTAIN:
            wait = self._limits.missing_seconds
            for backend in backends:
                backend.missing = True
        self._retries.append((self._outbox.now + wait, channel, backends))

    def _let_go(self, backend: BackendSubscription) -> bool:
        """Lets a BE subscription go, unless it is wanted or may be the answer to a request in other words."""
        if backend.claims or backend.subscriptions:
            return False
        if self._is_asked_for(backend.channel.name):
            self._lingering.set(self._outbox.now, backend)
            return False
        known = self._holdings.backends.get(backend.be) is backend
        self._forget(backend)
        return known

    def _forget_stranger(self, be: int) -> bool:
        """Strikes one off the list; whether it still is one. Should it be the answer to a request, it will be known or
        noticed again."""
        return not self._is_asked_for(self._strange.pop(be)) and be not in self._holdings.backends

    def _is_asked_for(self, channel: str) -> bool:
        """Whether a request may be for this channel: one in words never heard before may be for any."""
        return any(self._names.get(pending.channel, channel) == channel for pending in self._waiting)

    def _forget(self, backend: BackendSubscription) -> None:
        if self._holdings.backends.get(backend.be) is not backend:
            return
        del self._holdings.backends[backend.be], backend.channel.backends[backend.be]
        for words in backend.keys:
            del self._holdings.keys[words]
        backend.channel.wanted.pop(backend, None)
        self._cache.close(backend.be)
        self._tidy()

    def _tidy(self) -> None:
        idle = [name for name, channel in self._holdings.channels.items() if not channel.backends]
        for name in idle:
            if not self._is_asked_for(name):
                del self._holdings.channels[name]

    def _detach(self, bes: list[int]) -> None:
        self._leaving.update(dict.fromkeys(bes))
        for part in parts(bes, lambda _: _NUMBER_BYTES):
            self._ask_to_detach(part)

    def _ask_to_detach(self, bes: list[int]) -> None:
        self._data.ask(lambda id: control.Detach(id, bes), partial(self._detached, bes))

    def _detached(self, bes: list[int], answer: Reply) -> None:  # noqa: ARG002
        for be in bes:
            self._leaving.pop(be, None)


def _weight(backend: BackendSubscription) -> int:
    return size(backend.parameters) + _NUMBER_BYTES

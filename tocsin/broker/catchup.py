"""Those who are behind: given what they missed, in order, from the cache or by pulling, until they are current.

A subscription is current when it has had everything up to its BE subscription's horizon; from then on new results are
given to it as they come. One pull for those behind is under way per channel, for many BE subscriptions and a bounded
span at once. They take turns: it is for whoever has waited longest, and for those who can use the same.
"""

from __future__ import annotations

from functools import partial
from math import inf

from tocsin.broker import encoding
from tocsin.broker.accounting import Traffic
from tocsin.broker.cache import ResultCache
from tocsin.broker.demand import Demand
from tocsin.broker.holdings import CatchupPull, FrontendSubscription, HeldChannel, Holdings, Session
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import DataRequests, Outbox, Reply, to_be_repeated
from tocsin.model import control
from tocsin.model.subscriber import Gap
from tocsin.model.weight import weight


class Catchup:
    """Brings subscriptions of connected subscribers to the horizon.

    What can go wrong: a connection does not keep up (it stops where it is until it is flushed), the link is lost or a
    pull fails (it is asked again), results are older than the data cluster keeps them (the subscriber is told of the
    gap).
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        data: DataRequests,
        cache: ResultCache,
        traffic: Traffic,
        limits: BrokerLimits,
        demand: Demand,
    ) -> None:
        self._holdings, self._outbox, self._data = holdings, outbox, data
        self._cache, self._traffic, self._limits, self._demand = cache, traffic, limits, demand
        self._retries: dict[HeldChannel, float] = {}

    def start(self, subscription: FrontendSubscription) -> None:
        """From now on what is after ``sent`` goes to the subscriber's connection."""
        session = subscription.stay.session
        backend = subscription.backend
        ready = session and not session.slow and not subscription.doubt
        if session and ready and subscription not in backend.current and subscription not in backend.ahead:
            if backend.idle:
                self._demand.resume(backend)
            self._advance(subscription, session)
            if subscription in backend.channel.behind and self._ready(subscription):
                self._pull(backend.channel)

    def stop(self, subscription: FrontendSubscription) -> None:
        """Nothing more is sent."""
        backend = subscription.backend
        backend.channel.behind.pop(subscription, None)
        if (pull := backend.channel.catching_up) and pull.takers:
            pull.takers.get(backend.be, {}).pop(subscription, None)
        if backend.current.pop(subscription, None) or backend.ahead.pop(subscription, None):
            subscription.sent = max(subscription.sent, backend.level)

    def advance(self, channel: HeldChannel) -> None:
        """The channel's level has risen."""
        for subscription in list(channel.behind):
            if session := subscription.stay.session:
                self._advance(subscription, session)
        self._pull(channel)

    def connected(self) -> None:
        """Asks again."""
        for channel in list(self._holdings.channels.values()):
            self._pull(channel)

    def lost(self) -> None:
        """Whatever was under way is not."""
        self._retries.clear()
        for channel in self._holdings.channels.values():
            channel.catching_up = None

    def due(self, now: float) -> None:
        """Tries again what failed."""
        for channel in [channel for channel, at in self._retries.items() if at <= now]:
            del self._retries[channel]
            self._pull(channel)

    def wake(self) -> float:
        """When something is due."""
        return min(self._retries.values()) if self._retries else inf

    def _advance(self, subscription: FrontendSubscription, session: Session) -> None:
        """As far as is possible without asking."""
        backend = subscription.backend
        channel = backend.channel
        if subscription.sent < backend.level:
            found = self._cache.after(backend.be, subscription.sent)
            if found is not None:
                self._give(subscription, session, found, backend.level)
        if subscription.sent < backend.horizon:
            channel.behind[subscription] = None
        else:
            channel.behind.pop(subscription, None)
            # What is pulled next begins after the channel's level; one that has had more is not given it again.
            ahead = subscription.sent > channel.level
            (backend.ahead if ahead else backend.current)[subscription] = session

    def _give(
        self, subscription: FrontendSubscription, session: Session, found: list[tuple[int, bytes]], complete: int
    ) -> None:
        """Results in order, up to the execution ``complete`` unless the connection has too much waiting before."""
        for execution, note in found:
            if not self._hand(subscription, session, execution, note):
                return
        subscription.sent = max(subscription.sent, complete)

    def _hand(self, subscription: FrontendSubscription, session: Session, execution: int, note: bytes) -> bool:
        """One result, unless it was had before; False if the connection has too much waiting for it."""
        if execution <= subscription.sent:
            return True
        if self._full(session):
            return False
        self._outbox.note_missed(session, note)
        self._traffic.send(self._outbox.now, encoding.weight(note))
        subscription.sent = execution
        return True

    def _pull(self, channel: HeldChannel) -> None:
        if channel.catching_up or not self._data.up or channel in self._retries:
            return
        ready = [subscription for subscription in channel.behind if self._ready(subscription)]
        if not ready:
            return
        head = ready[0]
        first = head.sent + 1
        last = min(head.backend.level, max(first, channel.oldest) + self._limits.pull_executions - 1)
        useful = [one.backend for one in ready if first - 1 <= one.sent < last]
        backends = list(dict.fromkeys([head.backend, *useful]))[: self._limits.pull_backends]
        bes, most = sorted(backend.be for backend in backends), self._limits.pull_bytes
        asked = {backend.be: backend for backend in backends}
        pull = channel.catching_up = CatchupPull(channel.incarnation, head, asked, first, last)
        self._data.ask(
            lambda id: control.Pull(id, channel.name, first, last, bes, most), partial(self._pulled, channel, pull)
        )

    def _ready(self, subscription: FrontendSubscription) -> bool:
        session = subscription.stay.session
        full = session is None or self._full(session)
        return not full and subscription.sent < subscription.backend.level

    def _full(self, session: Session) -> bool:
        return session.waiting + session.noted > self._limits.waiting_bytes

    def _pulled(self, channel: HeldChannel, pull: CatchupPull, answer: Reply) -> None:
        if isinstance(answer, control.Results):
            self._traffic.receive(self._outbox.now, sum(weight(result.bytes) for result in answer.results))
        if channel.catching_up is not pull:
            return
        if pull.incarnation != channel.incarnation:
            # What it was asked for means something else by now.
            channel.catching_up = None
            self._pull(channel)
            return
        if isinstance(answer, control.Results) and answer.incarnation != pull.incarnation:
            channel.catching_up = None
            self._retries[channel] = self._outbox.now + self._limits.retry_seconds
            return
        if isinstance(answer, control.Error) and to_be_repeated(answer):
            channel.catching_up = None
            self._retries[channel] = self._outbox.now + (answer.retry_after or self._limits.retry_seconds)
            return
        upto, more = pull.last, False
        if isinstance(answer, control.Results):
            self._take_in(channel, pull, answer)
            more = answer.more
            upto = pull.last if answer.upto is None else answer.upto
        if not more:
            self._finish(channel, pull, upto)

    def _take_in(self, channel: HeldChannel, pull: CatchupPull, part: control.Results) -> None:
        """Gives a part to those who have had all before it."""
        takers = self._takers(pull)
        channel.oldest = max(channel.oldest, part.oldest)
        for be, execution in part.gone.items():
            for subscription in list(takers.get(be, ())):
                self._skip(subscription, execution)
        for result in part.results:
            note = encoding.note(result)
            for subscription in list(takers.get(result.be, ())):
                session = subscription.stay.session if subscription in channel.behind else None
                if session is None or not self._hand(subscription, session, result.execution, note):
                    # What comes after it would leave a hole.
                    del takers[result.be][subscription]

    def _takers(self, pull: CatchupPull) -> dict[int, dict[FrontendSubscription, None]]:
        """All who are behind by no more than what was asked for, when the answer begins to come."""
        if pull.takers is None:
            pull.takers = {
                be: {
                    one: None
                    for one in backend.subscriptions
                    if one.stay.session and one in backend.channel.behind and one.sent >= pull.first - 1
                }
                for be, backend in pull.backends.items()
                if backend.be == be
            }
        return pull.takers

    def _skip(self, subscription: FrontendSubscription, last: int) -> None:
        """What was found for a subscription up to an execution is gone, and its subscriber is told so."""
        if subscription.sent < last:
            if subscription.stay.session and not subscription.live:
                gap = Gap(subscription.backend.be, subscription.sent + 1, last)
                self._outbox.reply(subscription.stay.session, gap)
            subscription.sent = last

    def _finish(self, channel: HeldChannel, pull: CatchupPull, upto: int) -> None:
        takers = [one for each in self._takers(pull).values() for one in each if one in channel.behind]
        channel.catching_up = None
        self._rotate(channel, pull.head, takers)
        for subscription in takers:
            subscription.sent = max(subscription.sent, upto)
            if session := subscription.stay.session:
                self._advance(subscription, session)
        self._pull(channel)

    def _rotate(self, channel: HeldChannel, head: FrontendSubscription, takers: list[FrontendSubscription]) -> None:
        """Puts those who had their turn behind all others, and whatever else the first of them wants with it."""
        for subscription in dict.fromkeys([*head.stay.subscriptions.values(), head, *takers]):
            if subscription in channel.behind:
                del channel.behind[subscription]
                channel.behind[subscription] = None

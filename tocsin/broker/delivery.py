"""New results: pulled once per execution for all BE subscriptions, and given to every subscription that is current.

One pull per channel is under way at a time; what is executed meanwhile is pulled by the next, in one go. It has a bound
in bytes, so that other channels get their turn, and its answer comes in parts, each of which is given as it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

from tocsin.broker import encoding
from tocsin.broker.accounting import Traffic
from tocsin.broker.cache import ResultCache
from tocsin.broker.catchup import Catchup
from tocsin.broker.demand import Demand
from tocsin.broker.holdings import BackendSubscription, HeldChannel, Holdings
from tocsin.broker.limits import BrokerLimits
from tocsin.broker.outbox import DataRequests, Outbox, Reply, to_be_repeated
from tocsin.model import control, subscriber
from tocsin.model.histories import Era
from tocsin.model.messages import Result
from tocsin.model.subscriber import Gap
from tocsin.model.weight import weight


class Delivery:
    """Brings results to those who are current.

    What can go wrong: the link is lost (all BE subscriptions are pulled from the last level on when it is back), a pull
    fails (it is tried again later, and nobody is given anything newer before), results are gone before they could be
    pulled (those who are current are told of the gap).
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        data: DataRequests,
        cache: ResultCache,
        catchup: Catchup,
        traffic: Traffic,
        limits: BrokerLimits,
        demand: Demand,
        strange: Callable[[HeldChannel], None],
    ) -> None:
        """``strange`` is told of a channel whose notices are counted otherwise than is known here."""
        self._holdings, self._outbox, self._data = holdings, outbox, data
        self._cache, self._catchup, self._traffic, self._limits = cache, catchup, traffic, limits
        self._demand, self._strange = demand, strange
        self._retries: dict[HeldChannel, float] = {}

    def executed(self, notice: control.Executed) -> None:
        """Something was found for these BE subscriptions."""
        channel = self._channel(notice)
        if channel:
            channel.executed, channel.interval = self._outbox.now, notice.seconds
            self._holdings.hear_rates(self._outbox.now, notice.bes, notice.rates, notice.seconds)
        if channel and notice.execution > channel.seen:
            channel.seen = notice.execution
            found = (channel.backends[be] for be in notice.bes if be in channel.backends)
            channel.wanted.update(self._demand.select(found))
            self.pull(channel)

    def behind(self, notice: control.Behind) -> None:
        """Something may have been found for any BE subscription."""
        channel = self._channel(notice)
        if channel and notice.last > channel.seen:
            channel.seen = notice.last
            channel.wanted.update(self._demand.select(channel.backends.values()))
            self.pull(channel)

    def _channel(self, notice: control.Executed | control.Behind) -> HeldChannel | None:
        """Whose notice it is; None if it counts under another incarnation than what is held here.

        Then what is held must be asked for again, which brings what was found.
        """
        channel = self._holdings.channels.get(notice.channel)
        if channel is None or channel.incarnation == notice.incarnation:
            return channel
        if channel.backends:
            self._strange(channel)
            return None
        channel.history, channel.seen, channel.level = [Era(notice.incarnation, 0)], 0, 0
        return channel

    def failing(self, notice: control.Failing) -> None:
        """Whoever is connected is told why they are not served, or not with everything."""
        channel = self._holdings.channels.get(notice.channel)
        backends = channel.backends if channel else {}
        for backend in [backends[be] for be in notice.bes if be in backends]:
            told = subscriber.Error("failing", f"{notice.channel}: {notice.message}", subscription=backend.be)
            for session in [one.stay.session for one in backend.subscriptions if one.stay.session]:
                self._outbox.reply(session, told)

    def pull(self, channel: HeldChannel) -> None:
        """Asks for what is new, unless that is being done."""
        if channel.pulling or not self._data.up or channel.seen <= channel.level or channel in self._retries:
            return
        first, last = channel.level + 1, min(channel.seen, channel.level + self._limits.pull_executions)
        backends = list(channel.wanted)
        if not backends:
            channel.level = channel.seen
            self._catchup.advance(channel)
            return
        if last == channel.seen:
            channel.wanted.clear()
        channel.pulling, channel.pulls = last, channel.pulls + 1
        bes = sorted(backend.be for backend in backends) if len(backends) <= self._limits.pull_ids else None
        self._data.ask(
            lambda id: control.Pull(id, channel.name, first, last, bes, self._limits.pull_bytes),
            partial(self._pulled, channel, channel.incarnation, channel.pulls, last),
        )

    def lost(self) -> None:
        """Whatever was under way is not; what is executed from now on is not heard of."""
        self._retries.clear()
        for channel in self._holdings.channels.values():
            channel.pulling = 0
            channel.wanted = self._demand.select(channel.backends.values())

    def due(self, now: float) -> None:
        """Tries again what failed."""
        for channel in [channel for channel, at in self._retries.items() if at <= now]:
            del self._retries[channel]
            self.pull(channel)

    def wake(self) -> float:
        """When something is due."""
        return min(self._retries.values()) if self._retries else inf

    def _pulled(self, channel: HeldChannel, incarnation: str, pull: int, last: int, answer: Reply) -> None:
        if isinstance(answer, control.Results):
            weights = sum(weight(result.bytes) for result in answer.results)
            self._traffic.receive(self._outbox.now, weights, channel.name, channel.interval)
        if incarnation != channel.incarnation or pull != channel.pulls:
            # What it was asked for means something else by now, or has other numbers, and is asked for as that.
            return
        if isinstance(answer, control.Results) and answer.incarnation != incarnation:
            channel.pulling = 0
            channel.wanted = self._demand.select(channel.backends.values())
            self._strange(channel)
            return
        if isinstance(answer, control.Error) and to_be_repeated(answer):
            channel.pulling = 0
            channel.wanted = self._demand.select(channel.backends.values())
            self._retries[channel] = self._outbox.now + (answer.retry_after or self._limits.retry_seconds)
            return
        upto = last
        if isinstance(answer, control.Results):
            self._take_in(channel, answer)
            if answer.more:
                return
            upto = last if answer.upto is None else min(answer.upto, last)
        channel.pulling = 0
        channel.level = max(channel.level, upto)
        if upto < last:
            # Also for BE subscriptions attached since: they take part in what is pulled next, for nobody has asked for
            # them yet.
            channel.wanted = self._demand.select(channel.backends.values())
        self._catchup.advance(channel)
        self.pull(channel)

    def _take_in(self, channel: HeldChannel, part: control.Results) -> None:
        channel.oldest = max(channel.oldest, part.oldest)
        for be, execution in part.gone.items():
            if (backend := channel.backends.get(be)) and execution > backend.level:
                self._skip(backend, execution)
        for result in part.results:
            # What is older than the BE subscription came with what others wanted: whoever is current has had it
            # elsewhere.
            if (backend := channel.backends.get(result.be)) and result.execution > backend.attached:
                self._give(backend, result)
        if part.more and part.results:
            # Of the last of these executions there may be more to come.
            channel.level = max(channel.level, part.results[-1].execution - 1)

    def _skip(self, backend: BackendSubscription, last: int) -> None:
        """What was found for a BE subscription up to an execution is gone before it could be pulled."""
        begun = dict.fromkeys(backend.current, backend.level) | {
            one: one.sent for one in backend.ahead if one.sent < last
        }
        for subscription, sent in begun.items():
            if subscription.stay.session:
                self._outbox.reply(subscription.stay.session, Gap(backend.be, sent + 1, last))
        self._cache.close(backend.be)
        self._cache.open(backend.be, last)

    def _give(self, backend: BackendSubscription, result: Result) -> None:
        """One result, to all who are current."""
        now, execution, note = self._outbox.now, result.execution, encoding.note(result)
        self._cache.put(now, backend.be, execution, note)
        for subscription in [one for one in backend.ahead if one.sent < execution]:
            backend.current[subscription] = backend.ahead.pop(subscription)
        self._outbox.note(backend.current.values(), note)
        self._traffic.send(
            now, weight(result.bytes) * len(backend.current), backend.channel.name, backend.channel.interval
        )

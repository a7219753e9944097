"""Those who are behind: given what they missed, in order, from the cache or by pulling, until they are current.

A subscription is current when it has had everything up to its line's horizon; from then on new results are given
to it as they come. One pull for those behind is under way per channel, for many lines and a bounded span at once. They
take turns: it is for whoever has waited longest, and for those who can use the same.
"""

from __future__ import annotations

from functools import partial
from math import inf

from tocsin.broker import frames
from tocsin.broker.accounting import Traffic
from tocsin.broker.attendance import Attendance
from tocsin.broker.cache import Cache
from tocsin.broker.holdings import Channel, Fetch, Holdings, Session, Subscription
from tocsin.broker.limits import Limits
from tocsin.broker.outbox import DataLink, Outbox, Reply, to_be_repeated
from tocsin.model import control
from tocsin.model.subscriber import Gap
from tocsin.model.weight import weight


class Catchup:
    """Brings subscriptions of connected subscribers to the horizon.

    What can go wrong: a connection does not keep up (it stops where it is until it is drained), the link is lost or a
    pull fails (it is asked again), results are older than the data cluster keeps them (the subscriber is told of the
    gap).
    """

    def __init__(
        self,
        holdings: Holdings,
        outbox: Outbox,
        data: DataLink,
        cache: Cache,
        traffic: Traffic,
        limits: Limits,
        attendance: Attendance,
    ) -> None:
        self._holdings, self._outbox, self._data = holdings, outbox, data
        self._cache, self._traffic, self._limits, self._attendance = cache, traffic, limits, attendance
        self._retries: dict[Channel, float] = {}

    def start(self, subscription: Subscription) -> None:
        """From now on what is after ``sent`` goes to the subscriber's connection."""
        session = subscription.stay.session
        line = subscription.line
        ready = session and not session.slow and not subscription.doubt
        if session and ready and subscription not in line.current and subscription not in line.ahead:
            self._attendance.attend(line)
            self._advance(subscription, session)
            if self._ready(subscription):
                self._pull(line.channel)

    def stop(self, subscription: Subscription) -> None:
        """Nothing more is sent."""
        line = subscription.line
        line.channel.behind.pop(subscription, None)
        if (fetch := line.channel.catching_up) and fetch.takers:
            fetch.takers.get(line.be, {}).pop(subscription, None)
        if line.current.pop(subscription, None) or line.ahead.pop(subscription, None):
            subscription.sent = max(subscription.sent, line.level)

    def advance(self, channel: Channel) -> None:
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

    def _advance(self, subscription: Subscription, session: Session) -> None:
        """As far as is possible without asking."""
        line = subscription.line
        channel = line.channel
        channel.behind[subscription] = None
        if subscription.sent < line.level:
            found = self._cache.after(line.be, subscription.sent)
            if found is not None:
                self._give(subscription, session, found, line.level)
        if subscription.sent >= line.horizon:
            del channel.behind[subscription]
            # What is pulled next begins after the channel's level; one that has had more is not given it again.
            ahead = subscription.sent > channel.level
            (line.ahead if ahead else line.current)[subscription] = session

    def _give(
        self, subscription: Subscription, session: Session, found: list[tuple[int, bytes]], complete: int
    ) -> None:
        """Results in order, up to the execution ``complete`` unless the connection has too much waiting before."""
        for execution, note in found:
            if not self._hand(subscription, session, execution, note):
                return
        subscription.sent = max(subscription.sent, complete)

    def _hand(self, subscription: Subscription, session: Session, execution: int, note: bytes) -> bool:
        """One result, unless it was had before; False if the connection has too much waiting for it."""
        if execution <= subscription.sent:
            return True
        if self._full(session):
            return False
        self._outbox.note_missed(session, note)
        self._traffic.send(self._outbox.now, frames.weight(note))
        subscription.sent = execution
        return True

    def _pull(self, channel: Channel) -> None:
        if channel.catching_up or not self._data.up or channel in self._retries:
            return
        ready = [subscription for subscription in channel.behind if self._ready(subscription)]
        if not ready:
            return
        head = ready[0]
        first = head.sent + 1
        last = min(head.line.level, max(first, channel.oldest) + self._limits.pull_executions - 1)
        useful = [one.line for one in ready if first - 1 <= one.sent < last]
        lines = list(dict.fromkeys([head.line, *useful]))[: self._limits.pull_lines]
        bes, most = sorted(line.be for line in lines), self._limits.pull_bytes
        asked = {line.be: line for line in lines}
        fetch = channel.catching_up = Fetch(channel.incarnation, head, asked, first, last)
        self._data.ask(
            lambda id: control.Pull(id, channel.name, first, last, bes, most), partial(self._pulled, channel, fetch)
        )

    def _ready(self, subscription: Subscription) -> bool:
        session = subscription.stay.session
        full = session is None or self._full(session)
        return not full and subscription.sent < subscription.line.level

    def _full(self, session: Session) -> bool:
        return session.waiting + session.noted > self._limits.waiting_bytes

    def _pulled(self, channel: Channel, fetch: Fetch, answer: Reply) -> None:
        if isinstance(answer, control.Results):
            self._traffic.receive(self._outbox.now, sum(weight(result.bytes) for result in answer.results))
        if channel.catching_up is not fetch:
            return
        if fetch.incarnation != channel.incarnation:
            # What it was asked for means something else by now.
            channel.catching_up = None
            self._pull(channel)
            return
        if isinstance(answer, control.Results) and answer.incarnation != fetch.incarnation:
            channel.catching_up = None
            self._retries[channel] = self._outbox.now + self._limits.retry_seconds
            return
        if isinstance(answer, control.Error) and to_be_repeated(answer):
            channel.catching_up = None
            self._retries[channel] = self._outbox.now + (answer.retry_after or self._limits.retry_seconds)
            return
        upto, more = fetch.last, False
        if isinstance(answer, control.Results):
            self._take_in(channel, fetch, answer)
            more = answer.more
            upto = fetch.last if answer.upto is None else answer.upto
        if not more:
            self._finish(channel, fetch, upto)

    def _take_in(self, channel: Channel, fetch: Fetch, part: control.Results) -> None:
        """Gives a part to those who have had all before it."""
        takers = self._takers(fetch)
        channel.oldest = max(channel.oldest, part.oldest)
        for be, execution in part.gone.items():
            for subscription in list(takers.get(be, ())):
                self._skip(subscription, execution)
        for result in part.results:
            note = frames.note(result)
            for subscription in list(takers.get(result.be, ())):
                session = subscription.stay.session if subscription in channel.behind else None
                if session is None or not self._hand(subscription, session, result.execution, note):
                    # What comes after it would leave a hole.
                    del takers[result.be][subscription]

    def _takers(self, fetch: Fetch) -> dict[int, dict[Subscription, None]]:
        """All who are behind by no more than what was asked for, when the answer begins to come."""
        if fetch.takers is None:
            fetch.takers = {
                be: {
                    one: None
                    for one in line.subscriptions
                    if one.stay.session and one in line.channel.behind and one.sent >= fetch.first - 1
                }
                for be, line in fetch.lines.items()
                if line.be == be
            }
        return fetch.takers

    def _skip(self, subscription: Subscription, last: int) -> None:
        """What was found for a subscription up to an execution is gone, and its subscriber is told so."""
        if subscription.sent < last:
            if subscription.stay.session and not subscription.live:
                gap = Gap(subscription.line.be, subscription.sent + 1, last)
                self._outbox.reply(subscription.stay.session, gap)
            subscription.sent = last

    def _finish(self, channel: Channel, fetch: Fetch, upto: int) -> None:
        takers = [one for each in self._takers(fetch).values() for one in each if one in channel.behind]
        channel.catching_up = None
        self._rotate(channel, fetch.head, takers)
        for subscription in takers:
            subscription.sent = max(subscription.sent, upto)
            if session := subscription.stay.session:
                self._advance(subscription, session)
        self._pull(channel)

    def _rotate(self, channel: Channel, head: Subscription, takers: list[Subscription]) -> None:
        """Puts those who had their turn behind all others, and whatever else the first of them wants with it."""
        for subscription in dict.fromkeys([*head.stay.subscriptions.values(), head, *takers]):
            if subscription in channel.behind:
                del channel.behind[subscription]
                channel.behind[subscription] = None

"""Those who are behind: given what they missed, in order, from the cache or by pulling, until they are current.

A subscription is current when it has had everything up to its line's horizon; from then on new results are given
to it as they come. One pull for those behind is under way per channel, for many lines and a bounded span at once.
"""

from __future__ import annotations

from functools import partial
from math import inf

from tocsin.broker import frames
from tocsin.broker.accounting import Account
from tocsin.broker.cache import Cache
from tocsin.broker.holdings import Channel, Holdings, Line, Session, Subscription
from tocsin.broker.limits import Limits
from tocsin.broker.outbox import DataLink, Outbox, Reply, to_be_repeated
from tocsin.model import control


class Catchup:
    """Brings subscriptions of connected subscribers to the horizon.

    What can go wrong: a connection does not keep up (it stops where it is until it is drained), the link is lost or a
    pull fails (it is asked again), results are older than the data cluster keeps them (they are not there any more).
    """

    def __init__(
        self, holdings: Holdings, outbox: Outbox, data: DataLink, cache: Cache, total: Account, limits: Limits
    ) -> None:
        self._holdings, self._outbox, self._data = holdings, outbox, data
        self._cache, self._total, self._limits = cache, total, limits
        self._retries: dict[Channel, float] = {}

    def start(self, subscription: Subscription) -> None:
        """From now on what is after ``sent`` goes to the subscriber's connection."""
        session = subscription.stay.session
        line = subscription.line
        ready = session and not session.slow and not subscription.doubt
        if session and ready and subscription not in line.current and subscription not in line.ahead:
            self._advance(subscription, session)
            if self._ready(subscription):
                self._pull(line.channel)

    def stop(self, subscription: Subscription) -> None:
        """Nothing more is sent."""
        line = subscription.line
        line.channel.behind.pop(subscription, None)
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
            channel.catching_up = False

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
            if execution <= subscription.sent:
                continue
            if self._full(session):
                return
            self._outbox.note_missed(session, note)
            for account in (subscription.line.account, self._total):
                account.outgoing.add(self._outbox.now, len(note))
            subscription.sent = execution
        subscription.sent = max(subscription.sent, complete)

    def _pull(self, channel: Channel) -> None:
        if channel.catching_up or not self._data.up or channel in self._retries:
            return
        ready = [subscription for subscription in channel.behind if self._ready(subscription)]
        if not ready:
            return
        first = min(subscription.sent for subscription in ready) + 1
        newest = max(subscription.line.level for subscription in ready)
        last = min(newest, first + self._limits.pull_executions - 1)
        lines = list(dict.fromkeys(subscription.line for subscription in ready if subscription.sent < last))
        # Who is furthest behind must be among them, or it would never end.
        furthest = next(subscription.line for subscription in ready if subscription.sent == first - 1)
        lines = list(dict.fromkeys([furthest, *lines]))[: self._limits.pull_lines]
        channel.catching_up = True
        self._data.ask(
            lambda id: control.Pull(id, channel.name, first, last, sorted(line.be for line in lines)),
            partial(self._pulled, channel, channel.incarnation, lines, first, last),
        )

    def _ready(self, subscription: Subscription) -> bool:
        session = subscription.stay.session
        full = session is None or self._full(session)
        return not full and subscription.sent < subscription.line.level

    def _full(self, session: Session) -> bool:
        return session.waiting + session.noted > self._limits.waiting_bytes

    def _pulled(
        self, channel: Channel, incarnation: str, lines: list[Line], first: int, last: int, answer: Reply
    ) -> None:
        channel.catching_up = False
        if incarnation != channel.incarnation:
            # What it was asked for means something else by now.
            self._pull(channel)
            return
        if isinstance(answer, control.Results) and answer.incarnation != incarnation:
            self._retries[channel] = self._outbox.now + self._limits.retry_seconds
            return
        if isinstance(answer, control.Error) and to_be_repeated(answer):
            self._retries[channel] = self._outbox.now + (answer.retry_after or self._limits.retry_seconds)
            return
        found: dict[int, list[tuple[int, bytes]]] = {line.be: [] for line in lines}
        for result in answer.results if isinstance(answer, control.Results) else []:
            if result.be in found:
                found[result.be].append((result.execution, frames.note(result)))
        for line in lines:
            self._share(line, found[line.be], first, last)
        self._pull(channel)

    def _share(self, line: Line, found: list[tuple[int, bytes]], first: int, last: int) -> None:
        """Gives a line's results to all who are behind by no more than these."""
        for subscription in list(line.subscriptions):
            session = subscription.stay.session
            if session and subscription in line.channel.behind and subscription.sent >= first - 1:
                self._give(subscription, session, found, last)
                self._advance(subscription, session)

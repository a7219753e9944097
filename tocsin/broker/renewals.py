"""When the data cluster is another than before: lines get other numbers, cursors go back, subscriptions end.

It may have been started again on what it had (nothing changes but the incarnation), on an older copy (what was counted
since the copy was made does not count), or on nothing (all numbers are new); or somebody has dropped a channel. What a
subscriber must know of it is told to it, and what must be stored is said to the coordinator until it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tocsin.broker.cache import Cache
from tocsin.broker.catchup import Catchup
from tocsin.broker.corrections import Corrections
from tocsin.broker.holdings import Channel, Holdings, Line, Subscription
from tocsin.broker.outbox import Outbox
from tocsin.model import subscriber
from tocsin.model.histories import DROPPED, NEWEST, Era, History, knows, resolve, shared, since
from tocsin.model.subscriber import Held

GONE: Final = "gone"


class Renewals:
    """Brings lines and subscriptions to a channel's new history.

    What can go wrong: a channel was dropped meanwhile (its subscriptions end), two lines turn out to be one (the later
    one takes the other's subscriptions), a subscriber knows of a newer incarnation than the broker (nothing is given to
    it until the broker has asked).
    """

    def __init__(
        self, holdings: Holdings, outbox: Outbox, cache: Cache, catchup: Catchup, corrections: Corrections
    ) -> None:
        self._holdings, self._outbox, self._cache = holdings, outbox, cache
        self._catchup, self._corrections = catchup, corrections

    def renew(self, channel: Channel, history: list[Era], numbers: Mapping[Line, int]) -> None:
        """A channel has this history now, and these lines have these numbers."""
        known = channel.incarnation
        common = shared(history, known, channel.history)
        other = {line: be for line, be in numbers.items() if line.be != be}
        if not other and known == (history[-1].incarnation if history else ""):
            channel.history = history
            self._settle(channel)
            return
        concerned = [each for line in channel.lines.values() for each in line.subscriptions]
        before = {subscription: subscription.held for subscription in concerned}
        for subscription in concerned:
            self._catchup.stop(subscription)
        channel.history = history
        if 0 <= common < channel.seen:
            self._holdings.setbacks[channel.name] = (
                f"channel {channel.name}: the data cluster went back from execution {channel.seen} to {common}; it has "
                "other data than before, an older copy or none, and subscribers went on from there"
            )
        if common == DROPPED:
            for line in list(channel.lines.values()):
                self.end(line, GONE, f"channel {channel.name} was dropped", before)
        self._take_back(channel, max(common, 0))
        for line, be in other.items():
            if not line.ended:
                self._renumber(line, be)
        for subscription, held in before.items():
            self._go_on(subscription, held, known)
        self._settle(channel)

    def end(self, line: Line, code: str, message: str, known: Mapping[Subscription, Held] | None = None) -> None:
        """A line is no more, and so are its subscriptions; ``known`` is how they were known, if they have changed."""
        line.ended = message
        for subscription in list(line.subscriptions):
            self._end(subscription, (known or {}).get(subscription, subscription.held), code, message)
        self._forget(line)

    def _take_back(self, channel: Channel, common: int) -> None:
        """What is after ``common`` was counted under an incarnation that is no more."""
        channel.seen, channel.level = min(channel.seen, common), min(channel.level, common)
        channel.pulling = 0
        for line in channel.lines.values():
            line.attached = min(line.attached, common)
            self._cache.cut(line.be, common)
            for subscription in line.subscriptions:
                subscription.acknowledged = min(subscription.acknowledged, common)

    def _renumber(self, line: Line, be: int) -> None:
        self._forget(line)
        heir = self._holdings.lines.get(be)
        was, line.be = line.be, be
        if heir is not None:
            line.heir = heir
        else:
            self._holdings.lines[be] = line.channel.lines[be] = self._holdings.active[be] = line
            for words in line.keys:
                self._holdings.keys.setdefault(words, line)
            self._cache.open(be, line.horizon)
        for subscription in list(line.subscriptions):
            subscription.stay.renumber(was, be)
            self._hand_over(subscription, was, line.present)

    def _hand_over(self, subscription: Subscription, was: int, line: Line) -> None:
        """A subscription under another number, and perhaps of another line, which its subscriber may have already."""
        stay = subscription.stay
        stay.subscriptions.pop(was, None)
        subscription.line.subscriptions.pop(subscription, None)
        if line.be not in stay.subscriptions:
            subscription.line = line
            stay.subscriptions[line.be] = subscription
            line.subscriptions[subscription] = None

    def _go_on(self, subscription: Subscription, before: Held, known: str) -> None:
        """Tells who must know how a subscription goes on, and goes on."""
        stay, line = subscription.stay, subscription.line.present
        now = stay.subscriptions.get(line.be)
        if now is None or now.line is not line:
            return
        now.sent = now.acknowledged
        if stay.session:
            history = since(line.channel.history, before.incarnation or known)
            self._outbox.reply(stay.session, subscriber.Renewed(before.subscription, now.held, history))
        if outdated(line.channel.history, before, now.held):
            self._corrections.replace(stay, before, now.held)
        self._catchup.start(now)

    def _settle(self, channel: Channel) -> None:
        """The channel's history is as new as can be: whoever knows of another is behind it, not ahead."""
        if not channel.doubted:
            return
        channel.doubted = False
        doubtful = [one for line in channel.lines.values() for one in line.subscriptions if one.doubt]
        for subscription in doubtful:
            before = subscription.held
            self._catchup.stop(subscription)
            cursor = resolve(channel.history, subscription.cursor)
            if cursor == DROPPED:
                self._end(subscription, before, GONE, f"channel {channel.name} was dropped")
                continue
            subscription.acknowledged, subscription.doubt = min(cursor, subscription.newest), None
            self._go_on(subscription, before, before.incarnation)

    def _end(self, subscription: Subscription, before: Held, code: str, message: str) -> None:
        stay, line = subscription.stay, subscription.line
        self._catchup.stop(subscription)
        stay.subscriptions.pop(line.be, None)
        line.subscriptions.pop(subscription, None)
        if stay.session:
            self._outbox.reply(stay.session, subscriber.Ended(before.subscription, code, message))
        self._corrections.replace(stay, before, None)

    def _forget(self, line: Line) -> None:
        """Nothing is known of a line under its number any more."""
        channel = line.channel
        if self._holdings.lines.get(line.be) is line:
            del self._holdings.lines[line.be]
            channel.lines.pop(line.be, None)
            self._holdings.active.pop(line.be, None)
            self._cache.close(line.be)
        channel.wanted.pop(line, None)
        for words in [words for words in line.keys if self._holdings.keys.get(words) is line]:
            del self._holdings.keys[words]


def outdated(history: History, stored: Held, now: Held) -> bool:
    """Whether the coordinator must be told how a subscription is held now.

    That the data cluster was started again need not be stored for everybody at once: the next acknowledgement does. But
    an incarnation is not to be forgotten while somebody's cursor is counted under it.
    """
    same = (stored.subscription, stored.channel, stored.parameters) == (now.subscription, now.channel, now.parameters)
    taken_back = now.cursor < stored.cursor or not knows(history, stored.incarnation)
    return not same or taken_back or not knows(history[-NEWEST // 2 :], stored.incarnation)


def gone(channel: Channel, incarnations: Iterable[str]) -> bool:
    """Whether one of these incarnations is that of a channel of the same name that was dropped."""
    return any(known and shared(channel.history, known) == DROPPED for known in incarnations)

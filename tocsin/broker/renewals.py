"""When the data cluster is another than before: BE subscriptions get other numbers, cursors go back, subscriptions end.

It may have been started again on what it had (nothing changes but the incarnation), on an older copy (what was counted
since the copy was made does not count), or on nothing (all numbers are new); or somebody has dropped a channel. What a
subscriber must know of it is told to it, and what must be stored is said to the coordinator until it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from tocsin.broker.cache import ResultCache
from tocsin.broker.catchup import Catchup
from tocsin.broker.corrections import Corrections
from tocsin.broker.holdings import BackendSubscription, FrontendSubscription, HeldChannel, Holdings
from tocsin.broker.outbox import Outbox, Reply
from tocsin.model import control, subscriber
from tocsin.model.histories import DROPPED, NEWEST, Era, History, common_execution, knows, resolve, since
from tocsin.model.subscriber import Held

GONE: Final = "gone"
MOST_DROPPED: Final = 100


class Renewals:
    """Brings BE and FE subscriptions to a channel's new history.

    What can go wrong: a channel was dropped meanwhile (its subscriptions end), two BE subscriptions turn out to be one
    (the later one takes the other's subscriptions), a subscriber knows of a newer incarnation than the broker (nothing
    is given to it until the broker has asked).
    """

    def __init__(
        self, holdings: Holdings, outbox: Outbox, cache: ResultCache, catchup: Catchup, corrections: Corrections
    ) -> None:
        self._holdings, self._outbox, self._cache = holdings, outbox, cache
        self._catchup, self._corrections = catchup, corrections
        self._dropped: deque[tuple[str, str]] = deque(maxlen=MOST_DROPPED)

    def learn(self, answer: control.Attached, numbers: Mapping[BackendSubscription, int]) -> HeldChannel:
        """The channel that an answer is about, with the terms and the history it has now."""
        channel = self._holdings.channel(answer.channel)
        channel.terms = answer.terms
        self.renew(channel, list(answer.history), numbers)
        return channel

    def dropped(self, notice: control.Dropped) -> None:
        """A channel is gone; one that was created anew since is another."""
        self._dropped.append((notice.channel, notice.incarnation))
        channel = self._holdings.channels.get(notice.channel)
        if channel and channel.incarnation == notice.incarnation:
            for backend in list(channel.backends.values()):
                self.end(backend, GONE, f"channel {notice.channel} was dropped")

    def unless_dropped(self, answer: Reply) -> Reply:
        """An answer, unless the notice that its channel was dropped has come before it."""
        if isinstance(answer, control.Attached) and (answer.channel, answer.incarnation) in self._dropped:
            return control.Error(GONE, f"channel {answer.channel} was dropped", answer.id)
        return answer

    def renew(self, channel: HeldChannel, history: list[Era], numbers: Mapping[BackendSubscription, int]) -> None:
        """A channel has this history now, and these BE subscriptions have these numbers."""
        known = channel.incarnation
        common = common_execution(history, known, channel.history)
        other = {backend: be for backend, be in numbers.items() if backend.be != be}
        if not other and known == (history[-1].incarnation if history else ""):
            channel.history = history
            self._settle(channel)
            return
        concerned = [each for backend in channel.backends.values() for each in backend.subscriptions]
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
            for backend in list(channel.backends.values()):
                self.end(backend, GONE, f"channel {channel.name} was dropped", before)
        self._take_back(channel, max(common, 0))
        for backend, be in other.items():
            if not backend.ended:
                self._renumber(backend, be)
        for subscription, held in before.items():
            self._go_on(subscription, held, known)
        self._settle(channel)

    def end(
        self,
        backend: BackendSubscription,
        code: str,
        message: str,
        known: Mapping[FrontendSubscription, Held] | None = None,
    ) -> None:
        """A BE subscription is no more, and so are its subscriptions; ``known`` is how they were known, if they have
        changed."""
        backend.ended = message
        for subscription in list(backend.subscriptions):
            self._end(subscription, (known or {}).get(subscription, subscription.held), code, message)
        self._forget(backend)

    def _take_back(self, channel: HeldChannel, common: int) -> None:
        """What is after ``common`` was counted under an incarnation that is no more."""
        channel.seen, channel.level = min(channel.seen, common), min(channel.level, common)
        channel.pulling = 0
        for backend in channel.backends.values():
            backend.attached = min(backend.attached, common)
            self._cache.cut(backend.be, common)
            for subscription in backend.subscriptions:
                subscription.acknowledged = min(subscription.acknowledged, common)

    def _renumber(self, backend: BackendSubscription, be: int) -> None:
        self._forget(backend)
        heir = self._holdings.backends.get(be)
        was, backend.be = backend.be, be
        if heir is not None:
            backend.heir = heir
        else:
            self._holdings.backends[be] = backend.channel.backends[be] = self._holdings.active[be] = backend
            for words in backend.keys:
                self._holdings.keys.setdefault(words, backend)
            self._cache.open(be, backend.horizon)
        for subscription in list(backend.subscriptions):
            subscription.stay.renumber(was, be)
            self._hand_over(subscription, was, backend.present)

    def _hand_over(self, subscription: FrontendSubscription, was: int, backend: BackendSubscription) -> None:
        """A subscription under another number, and perhaps of another BE subscription, which its subscriber may have
        already."""
        stay = subscription.stay
        stay.subscriptions.pop(was, None)
        subscription.backend.subscriptions.pop(subscription, None)
        if backend.be not in stay.subscriptions:
            subscription.backend = backend
            stay.subscriptions[backend.be] = subscription
            backend.subscriptions[subscription] = None

    def _go_on(self, subscription: FrontendSubscription, before: Held, known: str) -> None:
        """Tells who must know how a subscription goes on, and goes on."""
        stay, backend = subscription.stay, subscription.backend.present
        now = stay.subscriptions.get(backend.be)
        if now is None or now.backend is not backend:
            return
        now.sent = now.acknowledged
        if stay.session:
            history = since(backend.channel.history, before.incarnation or known)
            self._outbox.reply(stay.session, subscriber.Renewed(before.subscription, now.held, history))
        if is_outdated(backend.channel.history, before, now.held):
            self._corrections.replace(stay, before, now.held)
        self._catchup.start(now)

    def _settle(self, channel: HeldChannel) -> None:
        """The channel's history is as new as can be: whoever knows of another is behind it, not ahead."""
        if not channel.doubted:
            return
        channel.doubted = False
        doubtful = [one for backend in channel.backends.values() for one in backend.subscriptions if one.doubt]
        for subscription in doubtful:
            before = subscription.held
            self._catchup.stop(subscription)
            cursor = resolve(channel.history, subscription.cursor)
            if cursor == DROPPED:
                self._end(subscription, before, GONE, f"channel {channel.name} was dropped")
                continue
            subscription.acknowledged, subscription.doubt = min(cursor, subscription.newest), None
            self._go_on(subscription, before, before.incarnation)

    def _end(self, subscription: FrontendSubscription, before: Held, code: str, message: str) -> None:
        stay, backend = subscription.stay, subscription.backend
        self._catchup.stop(subscription)
        stay.subscriptions.pop(backend.be, None)
        backend.subscriptions.pop(subscription, None)
        if stay.session:
            self._outbox.reply(stay.session, subscriber.Ended(before.subscription, code, message))
        self._corrections.replace(stay, before, None)

    def _forget(self, backend: BackendSubscription) -> None:
        """Nothing is known of a BE subscription under its number any more."""
        channel = backend.channel
        if self._holdings.backends.get(backend.be) is backend:
            del self._holdings.backends[backend.be]
            channel.backends.pop(backend.be, None)
            self._holdings.active.pop(backend.be, None)
            self._cache.close(backend.be)
        channel.wanted.pop(backend, None)
        for words in [words for words in backend.keys if self._holdings.keys.get(words) is backend]:
            del self._holdings.keys[words]


def is_outdated(history: History, stored: Held, now: Held) -> bool:
    """Whether the coordinator must be told how a subscription is held now.

    That the data cluster was started again need not be stored for everybody at once: the next acknowledgement does. But
    an incarnation is not to be forgotten while somebody's cursor is counted under it.
    """
    same = (stored.subscription, stored.channel, stored.parameters) == (now.subscription, now.channel, now.parameters)
    taken_back = now.cursor < stored.cursor or not knows(history, stored.incarnation)
    return not same or taken_back or not knows(history[-NEWEST // 2 :], stored.incarnation)


def is_gone(channel: HeldChannel, incarnations: Iterable[str]) -> bool:
    """Whether one of these incarnations is that of a channel of the same name that was dropped."""
    return any(known and common_execution(channel.history, known) == DROPPED for known in incarnations)

"""An edge's subscribers: what they want, and how far each was sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tocsin.content.filter import Filter
from tocsin.content.values import Publication
from tocsin.overlay.actions import CloseClient, SendNote
from tocsin.overlay.catchup import PieceFetcher, note
from tocsin.overlay.dialogue import HeadCursor, Passed
from tocsin.overlay.held import HeldSubscription
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.links import Links
from tocsin.overlay.messages import Routed
from tocsin.overlay.post import Post


class _Coming(NamedTuple):
    """What somebody says who subscribes."""

    subscriber: str
    filter: Filter
    cursors: dict[str, HeadCursor]


class Subscriptions:
    """All who are connected to an edge.

    What can go wrong: the way to a head is interrupted. Then nothing of it is sent to anybody until what was missed in
    between has been fetched (:class:`PieceFetcher`). What comes late of a log that the head has lost since counts for
    nobody who has heard of the next one. Somebody subscribes again and again on a connection: that counts when what was
    fetched for it before has come, and was read, so that it is fetched no faster than it is read.

    ``match`` finds the filters that a publication fulfils; a driver may put one in its place that measures as well.
    """

    def __init__(self, name: str, incarnation: str, post: Post, links: Links, limits: OverlayLimits) -> None:
        self._post, self._links, self._limits = post, links, limits
        self._clients: dict[int, HeldSubscription] = {}
        self._names: dict[str, HeldSubscription] = {}
        self._by_filter: dict[Filter, dict[HeldSubscription, None]] = {}
        self.match: Callable[[Publication], list[Filter]] = links.publications.own.matching
        self.catch_up = PieceFetcher(name, incarnation, post, links, limits, self._clients, self._by_filter)
        self.catch_up.idle = self._come_again
        # What was said last by those who are to read something first.
        self._again: dict[int, _Coming] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def get(self, subscriber: str) -> HeldSubscription | None:
        """A subscriber, if it is here."""
        return self._names.get(subscriber)

    @property
    def by_filter(self) -> dict[Filter, list[str]]:
        """Who wants each filter."""
        return {filter: [held.subscriber for held in all_held] for filter, all_held in self._by_filter.items()}

    @property
    def all(self) -> list[HeldSubscription]:
        """All of them; only to be looked at."""
        return list(self._clients.values())

    def subscribe(self, client: int, subscriber: str, filter: Filter, cursors: dict[str, HeadCursor]) -> None:
        """Somebody comes, or says its cursors again. Whoever has the name on another connection was here before, and is
        let go."""
        coming = _Coming(subscriber, filter, cursors)
        if client in self._clients or self.catch_up.is_busy(client):
            self._again[client] = coming
            self.catch_up.await_read(client)
        else:
            self._come(client, coming)

    def _come_again(self, client: int) -> None:
        if coming := self._again.pop(client, None):
            self._come(client, coming)

    def _come(self, client: int, coming: _Coming) -> None:
        subscriber, filter, cursors = coming
        before = self._names.get(subscriber)
        if before and (before.client, before.filter) == (client, filter):
            before.come(cursors)
            self.catch_up.fetch([before])
            return
        if before and before.client != client:
            self.lose(before.client)
            self._post.add(CloseClient(before.client, "the subscriber has come again"))
        # A connection is for one subscription: what it had before, whoever's that was, is over.
        self.remove(client)
        held = HeldSubscription(subscriber, filter, client)
        held.come(cursors)
        self._clients[client] = self._names[subscriber] = held
        if filter not in self._by_filter:
            self._by_filter[filter] = {}
            self._links.want(filter)
        self._by_filter[filter][held] = None
        self.catch_up.fetch([held])

    def lose(self, client: int) -> None:
        """A connection is over."""
        self.remove(client)
        self.catch_up.lose(client)

    def remove(self, client: int) -> None:
        """Somebody is gone."""
        self._again.pop(client, None)
        held = self._clients.pop(client, None)
        if held is None:
            return
        self.catch_up.forget(held)
        del self._names[held.subscriber], self._by_filter[held.filter][held]
        if not self._by_filter[held.filter]:
            del self._by_filter[held.filter]
            self._links.give_up(held.filter)

    def deliver(self, publication: Routed) -> tuple[list[Filter], int]:
        """A publication came; the filters that it matches, and to how many it is sent."""
        matched = self.match(publication.content)
        taking = [held for filter in matched for held in self._by_filter[filter] if self._takes(held, publication)]
        for held in taking:
            held.sent[publication.head] = held.told[publication.head] = publication.offset
        if taking:
            self._post.add(SendNote([held.client for held in taking], note(publication)))
        return matched, len(taking)

    def mark(self, head: str, offset: int, incarnation: str = "") -> None:
        """All of a head's publications up to an offset have come, under an incarnation or whichever."""
        self.catch_up.exists(head)
        for held in self._clients.values():
            if held.follows(head, incarnation) and held.sent[head] < offset:
                held.sent[head] = offset
                if offset - held.told[head] > self._limits.cursor_lag:
                    held.told[head] = offset
                    self._post.reply(held.client, Passed(head, offset))

    def interrupt(self, heads: Iterable[str] | None = None) -> None:
        """Nothing comes from these heads, or from any."""
        for held in self._clients.values():
            held.interrupt(heads)
        self.catch_up.interrupt(heads)
        self.fetch_all()

    def fetch_all(self) -> None:
        """Fetches what anybody has missed, as there may be a way to other heads than before."""
        for held in self._clients.values():
            held.asked_again.clear()
        self.catch_up.fetch_all()

    def _takes(self, held: HeldSubscription, publication: Routed) -> bool:
        head = publication.head
        return held.follows(head, publication.incarnation) and publication.offset > held.sent[head]

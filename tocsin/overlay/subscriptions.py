"""An edge's subscribers: what each wants, how far each was sent, and what must be fetched for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

from tocsin.content.filter import Filter
from tocsin.overlay.actions import CloseClient, SendNote
from tocsin.overlay.dialogue import Began, Gap, Note, Passed
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.links import Links
from tocsin.overlay.messages import HEADS, Control, Fetch, Found, Routed
from tocsin.overlay.post import Post


@dataclass(slots=True, eq=False)
class HeldSubscription:
    """A subscriber that is connected here.

    Args:
        sent: by head, the offset up to which everything that matches was sent, or had before.
        told: what of that the subscriber knows.
        live: heads whose publications are sent as they come.
        fetch: the id of the last fetch it takes part in; answers to others are not for it.
    """

    subscriber: str
    filter: Filter
    session: int
    sent: dict[str, int]
    told: dict[str, int] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    fetch: str = ""


class Subscriptions:
    """All who are connected to an edge.

    What can go wrong: the way to a head is interrupted. Then nothing of it is sent to anybody until what was missed in
    between has been fetched. A fetch or its answer is lost: the way was interrupted, and when it is restored all is
    fetched that is not live; a head that says nothing is asked again after a while.
    """

    def __init__(self, name: str, incarnation: str, post: Post, links: Links, limits: OverlayLimits) -> None:
        self._name, self._incarnation = name, incarnation
        self._post, self._links, self._limits = post, links, limits
        self._sessions: dict[int, HeldSubscription] = {}
        self._names: dict[str, HeldSubscription] = {}
        self._by_filter: dict[Filter, dict[HeldSubscription, None]] = {}
        self._fetches = 0
        self._refetch = inf
        self.began: Callable[[HeldSubscription], None] = lambda held: None  # noqa: ARG005

    def __len__(self) -> int:
        return len(self._sessions)

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
        return list(self._sessions.values())

    def subscribe(self, session: int, subscriber: str, filter: Filter, cursors: dict[str, int]) -> HeldSubscription:
        """Somebody comes, or says its cursors again. Whoever has the name on another connection was here before, and is
        let go."""
        before = self._names.get(subscriber)
        if before and (before.session, before.filter) == (session, filter):
            return self._begin_again(before, cursors)
        if before:
            self.remove(before.session)
            if before.session != session:
                self._post.add(CloseClient(before.session, "the subscriber has come again"))
        held = HeldSubscription(subscriber, filter, session, dict(cursors), dict(cursors))
        self._sessions[session] = self._names[subscriber] = held
        if filter not in self._by_filter:
            self._by_filter[filter] = {}
            self._links.want(filter)
        self._by_filter[filter][held] = None
        self._fetch([held])
        return held

    def remove(self, session: int) -> None:
        """Somebody is gone."""
        held = self._sessions.pop(session, None)
        if held is None:
            return
        del self._names[held.subscriber], self._by_filter[held.filter][held]
        if not self._by_filter[held.filter]:
            del self._by_filter[held.filter]
            self._links.give_up(held.filter)

    def deliver(self, publication: Routed) -> tuple[list[Filter], int]:
        """A publication came; the filters that it matches, and to how many it is sent."""
        matched = self._links.publications.own.matching(publication.content)
        taking = [held for filter in matched for held in self._by_filter[filter] if self._takes(held, publication)]
        for held in taking:
            held.sent[publication.head] = held.told[publication.head] = publication.offset
        if taking:
            self._post.add(SendNote([held.session for held in taking], note(publication)))
        return matched, len(taking)

    def mark(self, head: str, offset: int) -> None:
        """All of a head's publications up to an offset have come."""
        for held in self._sessions.values():
            if head in held.live and held.sent[head] < offset:
                held.sent[head] = offset
                if offset - held.told[head] > self._limits.cursor_lag:
                    held.told[head] = offset
                    self._post.reply(held.session, Passed(head, offset))

    def interrupt(self, heads: Iterable[str] | None = None) -> None:
        """Nothing comes from these heads, or from any."""
        for held in self._sessions.values():
            if heads is None:
                held.live.clear()
            else:
                held.live.difference_update(heads)
        self.fetch_all()

    def fetch_all(self) -> None:
        """Fetches what anybody has missed; whatever was asked before is void."""
        self._fetch(list(self._sessions.values()))

    def found(self, found: Found) -> None:
        """A head has answered a fetch."""
        for held in self._sessions.values():
            if held.fetch == found.id and found.head not in held.live:
                self._catch_up(held, found)

    def due(self, now: float) -> None:
        """Asks again who has not answered."""
        if self._refetch <= now:
            self._refetch = inf
            missing = [held for held in self._sessions.values() if held.sent.keys() - held.live]
            if missing:
                self._fetch(missing)

    def wake(self) -> float:
        """When there is something to do."""
        return self._refetch

    def _begin_again(self, held: HeldSubscription, cursors: dict[str, int]) -> HeldSubscription:
        held.sent, held.told = dict(cursors), dict(cursors)
        held.live.clear()
        self._fetch([held])
        return held

    def _takes(self, held: HeldSubscription, publication: Routed) -> bool:
        return publication.head in held.live and publication.offset > held.sent[publication.head]

    def _fetch(self, fetching: list[HeldSubscription]) -> None:
        """What these have missed of any head that is not live for all of them."""
        if not fetching or not self._links.open:
            return
        self._fetches += 1
        id = f"{self._incarnation}-{self._fetches}"
        cursors: dict[str, int] = {}
        settled = set.intersection(*(held.live for held in fetching))
        for held in fetching:
            held.fetch = id
            for head in held.sent.keys() - held.live:
                cursors[head] = min(held.sent[head], cursors.get(head, held.sent[head]))
        every = len(fetching) == len(self._sessions)
        filters = self._links.publications.own.covering_set() if every else {held.filter: None for held in fetching}
        fetch = Fetch(id, list(map(str, filters)), dict(sorted(cursors.items())), sorted(settled))
        self._links.route(Control({"to": HEADS}, self._name, fetch))
        self._refetch = min(self._refetch, self._post.now + self._limits.refetch_seconds)

    def _catch_up(self, held: HeldSubscription, found: Found) -> None:
        head = found.head
        since = held.sent.get(head)
        if since is None:
            held.sent[head] = found.last
            self._post.reply(held.session, Began(head, found.last))
        else:
            held.sent[head] = max(since, found.last)
            self._post.reply(held.session, Began(head, since))
            self._replay(held, since, found)
        held.told[head] = held.sent[head]
        held.live.add(head)
        self.began(held)

    def _replay(self, held: HeldSubscription, since: int, found: Found) -> None:
        if since + 1 < found.oldest:
            self._post.reply(held.session, Gap(found.head, since + 1, found.oldest - 1))
        for publication in found.publications:
            if publication.offset > since and held.filter.matches(publication.content):
                self._post.add(SendNote([held.session], note(publication)))
        self._post.reply(held.session, Passed(found.head, held.sent[found.head]))


def note(publication: Routed) -> Note:
    """A publication as subscribers get it."""
    head, offset, publisher, sequence = (
        publication.head,
        publication.offset,
        publication.publisher,
        publication.sequence,
    )
    return Note(head, offset, publisher, sequence, publication.content)

"""What an edge's subscribers have missed: fetched from the heads, piece by piece, as fast as each of them reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from tocsin.content.filter import Filter
from tocsin.overlay.actions import AwaitFlush, SendNote
from tocsin.overlay.dialogue import Began, Gap, HeadCursor, Note, Passed
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.links import Links
from tocsin.overlay.messages import HEADS, Control, Fetch, Found, Routed
from tocsin.overlay.post import Post

# For so many it is quicker to ask each than to look up who wants a publication.
_FEW: Final = 4
# An offset in a message, with what is around it.
_CURSOR_BYTES: Final = 24


@dataclass(slots=True, eq=False)
class HeldSubscription:
    """A subscriber that is connected here.

    Args:
        client: the number of its connection.
        sent: by head, the offset up to which everything that matches was sent, or had before.
        incarnations: of the heads' logs, under which those offsets count.
        told: what of that the subscriber knows.
        live: heads whose publications are sent as they come.
        behind: heads of which a piece was sent and more is to come, with the id of the fetch of the next one; empty
            before it is asked for.
        fetch: the id of the last fetch from all heads; answers to others are not for it.
        draining: whether a piece was sent, and is not yet read.
        asked_again: how often each head was, since it has answered or there was a new way to heads.
    """

    subscriber: str
    filter: Filter
    client: int
    sent: dict[str, int] = field(default_factory=dict)
    incarnations: dict[str, str] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    behind: dict[str, str] = field(default_factory=dict)
    fetch: str = ""
    draining: bool = False
    asked_again: dict[str, int] = field(default_factory=dict)

    def come(self, cursors: dict[str, HeadCursor]) -> None:
        """The subscriber says how far it is; nothing is sent as it comes before that has been fetched."""
        self.sent = {head: cursor.offset for head, cursor in cursors.items()}
        self.incarnations = {head: cursor.incarnation for head, cursor in cursors.items()}
        self.told = dict(self.sent)
        self.asked_again.clear()
        self.interrupt(None)

    def interrupt(self, heads: Iterable[str] | None) -> None:
        """Nothing comes from these heads, or from any."""
        for head in list(self.live | self.behind.keys()) if heads is None else heads:
            self.live.discard(head)
            self.behind.pop(head, None)

    def awaits(self, found: Found) -> bool:
        """Whether an answer is for it."""
        return found.head not in self.live and self.behind.get(found.head, self.fetch) == found.id

    def unanswered_heads(self) -> set[str]:
        """The heads that it has a cursor for, and that have not answered."""
        return self.sent.keys() - self.live - self.behind.keys()

    def ask_again(self, most: int) -> bool:
        """Counts that heads are asked again which have not answered; whether there is one that was not so often yet.
        Each is counted by itself: one that does not exist uses up no patience with the others."""
        again = [head for head in self.unanswered_heads() if self.asked_again.get(head, 0) < most]
        for head in again:
            self.asked_again[head] = self.asked_again.get(head, 0) + 1
        return bool(again)

    def counts_from_cursor(self, found: Found) -> bool:
        """Whether the head that answers was told of its cursor, if it has one."""
        head = found.head
        return head not in self.sent or head in self.behind or self.incarnations[head] in found.shared


class PieceFetcher:
    """Fetches what was missed.

    All heads are asked once for what any of some subscribers has missed. They are told of cursors for heads that are
    known here, because they are linked or have said something: whatever subscribers make up, there are few of these. Of
    any other head that answers it is known then that it exists, and it is asked again, with the cursors for it.

    A head answers with a piece, bounded by number and bytes. When a subscriber has read it, the next one is asked for,
    together with others who are about as far: so many cost little more than one, and nobody waits for whoever is slower
    or further behind.

    Args:
        held: all who are connected, by the numbers of their connections; only to be looked at, as is ``by_filter``.
        began: called with whoever is served from a head.

    What can go wrong: a fetch or its answer is lost. Then the way was interrupted, and when it is restored all is
    fetched that is not live; a head that says nothing is asked again after a while, some times. One that is away for
    longer is asked when there is a way to it again.
    """

    def __init__(
        self,
        name: str,
        incarnation: str,
        post: Post,
        links: Links,
        limits: OverlayLimits,
        held: dict[int, HeldSubscription],
        by_filter: dict[Filter, dict[HeldSubscription, None]],
    ) -> None:
        self._name, self._incarnation = name, incarnation
        self._post, self._links, self._limits = post, links, limits
        self._held, self._by_filter = held, by_filter
        self._fetches = 0
        self._heads: set[str] = set()
        self._draining: set[int] = set()
        self._refetch = self._go_on_at = inf
        self.began: Callable[[HeldSubscription], None] = lambda held: None  # noqa: ARG005

    def fetch(self, fetching: list[HeldSubscription]) -> None:
        """What these have missed of any head that does not serve all of them; what was asked of all heads is void."""
        if not fetching or not self._links.open:
            return
        for group in self._groups_to_ask(fetching):
            self._fetch_from_all(group)

    def exists(self, head: str) -> None:
        """Something has come from a head."""
        self._heads.add(head)

    def found(self, found: Found) -> None:
        """A head has answered a fetch."""
        self.exists(found.head)
        awaiting = [held for held in self._held.values() if held.awaits(found)]
        taking = {held: self._begin(held, found) for held in awaiting if held.counts_from_cursor(found)}
        for publication in found.publications:
            wanting = self._wanting(publication, taking)
            if clients := [held.client for held in wanting if publication.offset > taking[held]]:
                self._post.add(SendNote(clients, note(publication)))
        for held, since in taking.items():
            self._advance(held, since, found)
        self.fetch([held for held in awaiting if held not in taking])

    def flushed(self, client: int) -> None:
        """Somebody has read what it was sent."""
        self._draining.discard(client)
        if held := self._held.get(client):
            held.draining = False
            if "" in held.behind.values():
                self._prepare()

    def forget(self, client: int) -> None:
        """Somebody is gone."""
        self._draining.discard(client)

    def due(self, now: float) -> None:
        """Goes on with whoever is ready, and asks again who has not answered."""
        if self._go_on_at <= now:
            self._go_on_at = inf
            self._go_on()
        if self._refetch <= now:
            self._refetch = inf
            for held in self._held.values():
                held.behind = {head: id for head, id in held.behind.items() if not id}
            self._fetch_again()

    def wake(self) -> float:
        """When there is something to do."""
        return min(self._refetch, self._go_on_at)

    def _fetch_again(self) -> None:
        self.fetch([held for held in self._held.values() if held.ask_again(self._limits.refetches)])

    def _groups_to_ask(self, fetching: list[HeldSubscription]) -> list[list[HeldSubscription]]:
        """Those who are asked for at once: all, unless the message would be too large."""
        size = sum(map(len, self._filters(fetching))) + _size(self._cursors(fetching))
        if size <= self._limits.ask_bytes or len(fetching) == 1:
            return [fetching]
        half = len(fetching) // 2
        return self._groups_to_ask(fetching[:half]) + self._groups_to_ask(fetching[half:])

    def _fetch_from_all(self, group: list[HeldSubscription]) -> None:
        id = self._id()
        settled = set.intersection(*(held.live | held.behind.keys() for held in group))
        for held in group:
            held.fetch = id
        self._ask(HEADS, Fetch(id, self._filters(group), self._cursors(group), sorted(settled)))

    def _cursors(self, group: list[HeldSubscription]) -> dict[str, dict[str, int]]:
        """By head and incarnation, the lowest that has not been answered."""
        cursors: dict[str, dict[str, int]] = {}
        known = self._heads.union(self._links.heads)
        for held in group:
            for head in held.unanswered_heads() & known:
                lowest, incarnation = cursors.setdefault(head, {}), held.incarnations[head]
                lowest[incarnation] = min(held.sent[head], lowest.get(incarnation, held.sent[head]))
        return dict(sorted(cursors.items()))

    def _begin(self, held: HeldSubscription, found: Found) -> int:
        """Tells a subscriber where it begins, if it is the first piece; the offset after which it takes this one."""
        head = found.head
        if head not in held.behind:
            self._tell_began(held, found)
            self.began(held)
        since = held.sent[head]
        if since + 1 < found.oldest:
            self._post.reply(held.client, Gap(head, since + 1, found.oldest - 1))
            since = found.oldest - 1
        return since

    def _tell_began(self, held: HeldSubscription, found: Found) -> None:
        head, known = found.head, held.incarnations.get(found.head, "")
        if head not in held.sent:
            held.sent[head] = found.last
            self._post.reply(held.client, Began(head, found.last, found.incarnation))
        else:
            shared = found.shared.get(known, 0)
            held.sent[head] = max(0, min(held.sent[head], shared))
            self._post.reply(held.client, Began(head, held.sent[head], found.incarnation, known, shared))
        held.incarnations[head] = found.incarnation

    def _wanting(self, publication: Routed, among: dict[HeldSubscription, int]) -> list[HeldSubscription]:
        """Who of these wants a publication."""
        if len(among) <= _FEW:
            return [held for held in among if held.filter.matches(publication.content)]
        filters = self._links.publications.own.matching(publication.content)
        return [held for filter in filters for held in self._by_filter[filter] if held in among]

    def _advance(self, held: HeldSubscription, since: int, found: Found) -> None:
        """A subscriber has been sent a piece, and is live if that was the last."""
        head, upto = found.head, max(since, found.upto)
        if upto > held.sent[head]:
            self._post.reply(held.client, Passed(head, upto))
        held.sent[head] = held.told[head] = upto
        held.behind.pop(head, None)
        held.asked_again.pop(head, None)
        if upto >= found.last:
            held.live.add(head)
            return
        held.behind[head] = ""
        if found.upto > since:
            held.draining = True
            self._draining.add(held.client)
            self._post.add(AwaitFlush(held.client))
        else:
            self._prepare()

    def _prepare(self) -> None:
        """Somebody is ready for the next piece: at once, or a little later together with others."""
        seconds = self._limits.gather_seconds if self._draining else 0.0
        self._go_on_at = min(self._go_on_at, self._post.now + seconds)

    def _go_on(self) -> None:
        """Asks for the next pieces of all who are ready."""
        ready: dict[str, list[HeldSubscription]] = {}
        for held in self._held.values():
            for head, id in held.behind.items():
                if not id and not held.draining:
                    ready.setdefault(head, []).append(held)
        for head, all_held in ready.items():
            for group in self._groups(head, all_held):
                for part in self._groups_to_ask(group):
                    self._fetch_next(head, part)

    def _groups(self, head: str, all_held: list[HeldSubscription]) -> list[list[HeldSubscription]]:
        """Those who have something of the same piece to come."""
        groups: list[list[HeldSubscription]] = []
        end = -inf
        for held in sorted(all_held, key=lambda held: held.sent[head]):
            if held.sent[head] >= end:
                end = held.sent[head] + self._limits.fetch_publications
                groups.append([])
            groups[-1].append(held)
        return groups

    def _fetch_next(self, head: str, group: list[HeldSubscription]) -> None:
        id, first = self._id(), group[0]
        for held in group:
            held.behind[head] = id
        cursors = {head: {first.incarnations[head]: first.sent[head]}}
        self._ask(head, Fetch(id, self._filters(group), cursors, []))

    def _ask(self, to: str, fetch: Fetch) -> None:
        self._links.route(Control({"to": to}, self._name, fetch))
        self._refetch = min(self._refetch, self._post.now + self._limits.refetch_seconds)

    def _filters(self, fetching: list[HeldSubscription]) -> list[str]:
        """What covers the filters of these; of most, that of all is shorter."""
        most = 2 * len(fetching) > len(self._held)
        return list(map(str, self._links.publications.own.covering_set() if most else _filters_of(fetching)))

    def _id(self) -> str:
        self._fetches += 1
        return f"{self._incarnation}-{self._fetches}"


def note(publication: Routed) -> Note:
    """A publication as subscribers get it."""
    head, offset, publisher, sequence = (
        publication.head,
        publication.offset,
        publication.publisher,
        publication.sequence,
    )
    return Note(head, offset, publisher, sequence, publication.content)


def _size(cursors: dict[str, dict[str, int]]) -> int:
    """About how many bytes they are in a message."""
    return sum(len(head) + len(known) + _CURSOR_BYTES for head, lowest in cursors.items() for known in lowest)


def _filters_of(fetching: list[HeldSubscription]) -> dict[Filter, None]:
    return {held.filter: None for held in fetching}

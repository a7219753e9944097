"""What an edge's subscribers have missed: fetched from the heads, piece by piece, as fast as each of them reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import count
from math import inf
from typing import Final, NamedTuple

from tocsin.content.filter import Filter
from tocsin.overlay.actions import AwaitFlush, SendNote
from tocsin.overlay.dialogue import Began, Gap, Note, Passed
from tocsin.overlay.held import HeldSubscription
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.links import Links
from tocsin.overlay.messages import HEADS, Control, Fetch, Found, Routed
from tocsin.overlay.post import Post
from tocsin.overlay.window import FetchWindow

# For so many it is quicker to ask each than to look up who wants a publication.
_FEW: Final = 4
# What a head needs for one more alternative of a filter takes about as long as so many bytes.
_ALTERNATIVE_BYTES: Final = 100
# An offset in a message, with what is around it.
_CURSOR_BYTES: Final = 24


class _Group(NamedTuple):
    """Who can be asked for at once, of all heads or of one, and whose turn it is."""

    turn: int
    head: str
    members: list[HeldSubscription]


class PieceFetcher:
    """Fetches what was missed.

    All heads are asked once for what any of some subscribers has missed. They are told of cursors for heads that are
    known here, because they are linked or have said something: whatever subscribers make up, there are few of these. Of
    any other head that answers it is known then that it exists, and it is asked again, with the cursors for it.

    A head answers with a piece, bounded by number and bytes. When a subscriber has read it, the next one is asked for,
    together with others who are about as far: so many cost little more than one, and nobody waits for whoever is slower
    or further behind. Only so many pieces are on their way at a time; those who have waited longest are asked for
    first, with all who can be asked for at once.

    Args:
        held: all who are connected, by the numbers of their connections; only to be looked at, as is ``by_filter``.
        began: called with whoever is served from a head.
        idle: called with the number of a connection on which everything was read, and for which nothing is on its way.

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
        self._window = FetchWindow(limits.fetches, limits.answer_seconds)
        self._fetches = 0
        # Those that something has come from, and of these those that have answered since the way was interrupted.
        self._heads: set[str] = set()
        self._answering: set[str] = set()
        self._draining: set[int] = set()
        # For whom all heads are to be asked, and who is ready for the next piece, with their turns.
        self._asking: dict[HeldSubscription, int] = {}
        self._ready: dict[HeldSubscription, int] = {}
        self._turns = count()
        # Whether some of these wait for pieces that are on their way.
        self._held_up = False
        self._refetch = self._go_on_at = inf
        self.began: Callable[[HeldSubscription], None] = lambda held: None  # noqa: ARG005
        self.idle: Callable[[int], None] = lambda client: None  # noqa: ARG005

    def fetch(self, fetching: list[HeldSubscription]) -> None:
        """What these have missed of any head that does not serve all of them; what was asked of all heads is void."""
        for held in fetching:
            held.fetch = ""
            self._asking.setdefault(held, next(self._turns))
        if not self._links.open:
            self._asking.clear()
        elif fetching:
            self._ask_in_turn(self._all_to_ask())

    def exists(self, head: str) -> None:
        """Something has come from a head."""
        self._heads.add(head)

    def fetch_all(self) -> None:
        """The same of everybody, as there may be a way to other heads than before; nothing is on its way any more."""
        gone = self._window.expire(inf)
        self.fetch(list(self._held.values()))
        self._tell_idle(gone)
        if self._held_up:
            self._go_on()

    def interrupt(self, heads: Iterable[str] | None) -> None:
        """These heads do not answer any more, or none does."""
        self._answering = set() if heads is None else self._answering.difference(heads)

    def is_busy(self, client: int) -> bool:
        """Whether a connection has not read all that it was sent, or something is on its way for it."""
        return client in self._draining or self._window.is_for(client)

    def await_read(self, client: int) -> None:
        """What a connection was sent is to be read before it is told as idle."""
        if client not in self._draining:
            self._draining.add(client)
            self._post.add(AwaitFlush(client))

    def found(self, found: Found) -> None:
        """A head has answered a fetch."""
        self.exists(found.head)
        done = self._window.answer(found.id, found.head)
        self._take(found)
        self._tell_idle(done)
        if self._held_up:
            self._go_on()

    def _take(self, found: Found) -> None:
        awaiting = [held for held in self._held.values() if held.awaits(found)]
        if awaiting:
            self._answering.add(found.head)
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
        held = self._held.get(client)
        if held and "" in held.behind.values():
            self._prepare(held)
        self._tell_idle([client])

    def forget(self, held: HeldSubscription) -> None:
        """Somebody is gone."""
        self._asking.pop(held, None)
        self._ready.pop(held, None)

    def lose(self, client: int) -> None:
        """A connection is over."""
        self._draining.discard(client)

    def _tell_idle(self, clients: Iterable[int]) -> None:
        for client in clients:
            if not self.is_busy(client):
                self.idle(client)

    def due(self, now: float) -> None:
        """Goes on with whoever is ready, and asks again who has not answered."""
        late = self._window.expire(now)
        if self._go_on_at <= now or (late and self._held_up):
            self._go_on_at = inf
            self._go_on()
        self._tell_idle(late)
        if self._refetch <= now:
            self._refetch = inf
            for held in self._held.values():
                held.behind = {head: id for head, id in held.behind.items() if not id}
            self._fetch_again()

    def wake(self) -> float:
        """When there is something to do."""
        return min(self._refetch, self._go_on_at, self._window.wake())

    def _fetch_again(self) -> None:
        self.fetch([held for held in self._held.values() if held.ask_again(self._limits.refetches)])

    def _ask_in_turn(self, groups: list[_Group]) -> None:
        """Asks as long as not too much is on its way, for whoever has waited longest first."""
        for _, head, group in sorted(groups, key=lambda each: each.turn):
            if not self._window.is_open:
                self._held_up = True
                return
            if head == HEADS:
                self._fetch_from_all(group)
            else:
                self._fetch_next(head, group)

    def _all_to_ask(self) -> list[_Group]:
        """Those for whom all heads are to be asked, unless nobody can be now."""
        if not self._asking or not self._window.is_open:
            self._held_up = self._held_up or bool(self._asking)
            return []
        groups = self._groups_to_ask(list(self._asking))
        return [_Group(min(map(self._asking.__getitem__, group)), HEADS, group) for group in groups]

    def _groups_to_ask(self, fetching: list[HeldSubscription]) -> list[list[HeldSubscription]]:
        """Those who are asked for at once: all, unless the message would be too large."""
        size = sum(map(_weight, self._filters(fetching))) + _size(self._cursors(fetching))
        if size <= self._limits.ask_bytes or len(fetching) == 1:
            return [fetching]
        half = len(fetching) // 2
        return self._groups_to_ask(fetching[:half]) + self._groups_to_ask(fetching[half:])

    def _fetch_from_all(self, group: list[HeldSubscription]) -> None:
        id = self._id()
        settled = set.intersection(*(held.live | held.behind.keys() for held in group))
        for held in group:
            held.fetch = id
            del self._asking[held]
        self._begin_fetch(id, self._answering.union(self._links.heads) - settled, group)
        self._ask(HEADS, Fetch(id, self._texts(group), self._cursors(group), sorted(settled)))

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
            self._draining.add(held.client)
            self._post.add(AwaitFlush(held.client))
        else:
            self._prepare(held)

    def _prepare(self, held: HeldSubscription) -> None:
        """Somebody is ready for the next piece: at once, or a little later together with others."""
        self._ready.setdefault(held, next(self._turns))
        seconds = self._limits.gather_seconds if self._draining else 0.0
        self._go_on_at = min(self._go_on_at, self._post.now + seconds)

    def _go_on(self) -> None:
        """Asks for all who wait."""
        self._held_up = False
        self._ask_in_turn(self._all_to_ask() + self._next_to_ask())

    def _next_to_ask(self) -> list[_Group]:
        """Those who are ready for the next piece, together with whoever is about as far."""
        ready: dict[str, list[HeldSubscription]] = {}
        for held in list(self._ready):
            heads = [head for head, id in held.behind.items() if not id]
            if held.client in self._draining or not heads:
                del self._ready[held]
                continue
            for head in heads:
                ready.setdefault(head, []).append(held)
        return [
            _Group(min(map(self._ready.__getitem__, part)), head, part)
            for head, all_held in ready.items()
            for group in self._groups(head, all_held)
            for part in self._groups_to_ask(group)
        ]

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
            if "" not in held.behind.values():
                self._ready.pop(held, None)
        self._begin_fetch(id, [head], group)
        cursors = {head: {first.incarnations[head]: first.sent[head]}}
        self._ask(head, Fetch(id, self._texts(group), cursors, []))

    def _begin_fetch(self, id: str, heads: Collection[str], group: list[HeldSubscription]) -> None:
        self._window.begin(id, heads, [held.client for held in group], self._post.now)

    def _ask(self, to: str, fetch: Fetch) -> None:
        self._links.route(Control({"to": to}, self._name, fetch))
        self._refetch = min(self._refetch, self._post.now + self._limits.refetch_seconds)

    def _filters(self, fetching: list[HeldSubscription]) -> list[Filter]:
        """What covers the filters of these; of most, that of all is shorter."""
        most = 2 * len(fetching) > len(self._held)
        return list(self._links.publications.own.covering_set() if most else _filters_of(fetching))

    def _texts(self, fetching: list[HeldSubscription]) -> list[str]:
        return list(map(str, self._filters(fetching)))

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


def _weight(filter: Filter) -> int:
    return len(str(filter)) + _ALTERNATIVE_BYTES * (filter.alternatives - 1)


def _size(cursors: dict[str, dict[str, int]]) -> int:
    """About how many bytes they are in a message."""
    return sum(len(head) + len(known) + _CURSOR_BYTES for head, lowest in cursors.items() for known in lowest)


def _filters_of(fetching: list[HeldSubscription]) -> dict[Filter, None]:
    return {held.filter: None for held in fetching}

"""A head's log: what was published to it, for those who come back. The only place where publications are kept."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from math import inf
from typing import Final

import msgspec

from tocsin.content.filter import Filter
from tocsin.content.filterset import FilterSet
from tocsin.content.values import Publication, Value
from tocsin.model.histories import DROPPED, NEWEST, Era, common_execution, incarnation, knows
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import Routed

# What is dropped is one in so many at most of what is in memory.
_SLACK: Final = 8
# Numbers stay below 2^53, which all languages can count: who has left out so many to get there is not forgotten.
_HIGHEST_FLOOR: Final = 2**52
OWN_NAMES: Final = "channel/"
"""What the names of a head's own publishers begin with, which no client can have. Their numbers are those of rows, so
they are never forgotten."""


class KeptLog(msgspec.Struct):
    """What is stored of a log: the latest publications, the last offset, and the last number of each publisher.

    ``history`` has the incarnations under which the head has logged, the present one last: see
    :mod:`tocsin.model.histories`. ``seen`` says when each publisher has last published, in seconds that the head has
    been running in all: while it is down, nobody could come. ``floor`` is the last number that any forgotten one had.
    """

    publications: list[Routed] = []
    last: int = 0
    sequences: dict[str, int] = {}
    history: list[Era] = []
    seen: dict[str, float] = {}
    floor: int = 0

    @property
    def age(self) -> float:
        """How long the head had been running when something was published last."""
        return max(self.seen.values(), default=0.0)

    def begin(self, incarnation: str) -> None:
        """A head goes on with the log, under an incarnation that there was never before."""
        self.history = [*self.history, Era(incarnation, self.last)][-NEWEST:]


class ReplayLog:
    """Publications by offset, from 1 on. What was appended is there when it is stored.

    Offsets come again when a head has lost its disk, or an older copy takes its place. So they count under an
    incarnation, and the log's history tells which are still the same.

    Args:
        head: whose log it is.
        kept: what was stored before, and has begun under the present incarnation.
        most: how many publications are kept, and ``most_bytes`` how many bytes of them, as they are sent, if that is
            more than one.
    """

    def __init__(self, head: str, kept: KeptLog, most: int, most_bytes: float = inf) -> None:
        self._head, self._most, self._most_bytes = head, most, most_bytes
        self._publications = kept.publications[-most:]
        self._sizes = [len(_encode(each)) for each in self._publications]
        self._bytes = sum(self._sizes)
        # So many of the oldest in these lists are dropped, and not cut off yet; their bytes do not count.
        self._dropped = 0
        self._taken, self._stored = dict(kept.sequences), dict(kept.sequences)
        self._remembered = _Remembered(kept)
        self.last, self._history = kept.last, kept.history
        self._owners = Counter(map(owner, kept.sequences))
        self._waiting: list[Routed] = []
        self._drop_old()

    @property
    def oldest(self) -> int:
        """The first offset of which everything is kept."""
        return self.last - self._count + 1

    @property
    def _count(self) -> int:
        return len(self._publications) - self._dropped

    @property
    def publishers(self) -> int:
        """How many publishers it knows a number of."""
        return len(self._taken)

    def publishers_of(self, owner: str) -> int:
        """How many of them are somebody's."""
        return self._owners[owner]

    @property
    def incarnation(self) -> str:
        """Under which its offsets count at present."""
        return incarnation(self._history)

    def continues(self, known: str) -> bool:
        """Whether it goes on from what it was under another incarnation."""
        return knows(self._history, known)

    def shared_until(self, known: str) -> int:
        """Up to which offset it is the same as under another incarnation; -1 if it has nothing of that."""
        return common_execution(self._history, known) if not known or self.continues(known) else DROPPED

    def pass_time(self, now: float) -> None:
        """It is so late, by the clock of whoever asks."""
        self._remembered.pass_time(now)

    def knows(self, publisher: str) -> bool:
        """Whether it has something of a publisher, or will have."""
        return publisher in self._taken

    def admit(self, publisher: str) -> None:
        """A publisher comes. One that is not known begins after all that are forgotten: it may be one of these, and a
        number that was given is never given again."""
        if publisher not in self._taken:
            self._taken[publisher] = self._stored[publisher] = self._remembered.floor
            self._owners[owner(publisher)] += 1
        self._remembered.see(publisher)

    def leave(self, publisher: str) -> None:
        """A publisher is gone; of one that has published nothing, nothing is known any more."""
        self._remembered.see(publisher)
        if self._taken[publisher] == self._stored[publisher] and publisher not in self._remembered.offsets:
            self._drop_publisher(publisher)

    def forget(self, connected: Container[str], limits: OverlayLimits) -> list[str]:
        """Forgets who was not seen for so long that nothing it has sent can still be on its way; returns their names.

        Who has something in the log is known for longer, so that it does not publish that again, unless its owner, or
        all together, have half as many names as they may.
        """
        forgotten = []
        for publisher in self._remembered.unseen(limits.publisher_seconds):
            number = self._stored[publisher]
            if publisher in connected or self._taken[publisher] != number or number > _HIGHEST_FLOOR:
                continue
            crowded = self._owners[owner(publisher)] > limits.publishers_each // 2
            crowded = crowded or len(self._taken) > limits.publishers // 2
            if crowded or self._remembered.offsets.get(publisher, 0) < self.oldest:
                self._remembered.floor = max(self._remembered.floor, number)
                self._drop_publisher(publisher)
                forgotten.append(publisher)
        return forgotten

    @property
    def floor(self) -> int:
        """The last number that any forgotten publisher had."""
        return self._remembered.floor

    def _drop_publisher(self, publisher: str) -> None:
        del self._taken[publisher], self._stored[publisher]
        self._remembered.drop(publisher)
        self._owners[owner(publisher)] -= 1
        if not self._owners[owner(publisher)]:
            del self._owners[owner(publisher)]

    def stored_number(self, publisher: str) -> int:
        """The last number of a publisher that is stored."""
        return self._stored.get(publisher, 0)

    def last_number(self, publisher: str) -> int:
        """The last number of a publisher that is stored, or will be."""
        return self._taken.get(publisher, 0)

    def find(self, publisher: str, sequence: int) -> Routed | None:
        """A publication that is kept, or will be."""
        for each in (*reversed(self._waiting), *islice(reversed(self._publications), self._count)):
            if (each.publisher, each.sequence) == (publisher, sequence):
                return each
        return None

    def append(self, publisher: str, sequence: int, content: dict[str, Value]) -> Routed | None:
        """A publication to be stored; None if one with that number, or a later one, is or will be."""
        if sequence <= self.last_number(publisher):
            return None
        if publisher not in self._taken:
            self._owners[owner(publisher)] += 1
            self._stored[publisher] = 0
        self._taken[publisher] = sequence
        offset = self.last + len(self._waiting) + 1
        publication = Routed(self._head, offset, publisher, sequence, content)
        self._waiting.append(publication)
        return publication

    def stored(self, offset: int) -> list[Routed]:
        """Everything up to an offset is stored; what of it was not before."""
        count = max(0, offset - self.last)
        done, self._waiting = self._waiting[:count], self._waiting[count:]
        self._publications += done
        sizes = [len(_encode(each)) for each in done]
        self._sizes += sizes
        self._bytes += sum(sizes)
        self._stored.update((each.publisher, each.sequence) for each in done)
        self._remembered.store(done)
        self.last += len(done)
        self._drop_old()
        return done

    def _drop_old(self) -> None:
        """Drops what is too much, as :func:`excess` has it, without looking at all that is kept."""
        while self._count > 1 and (self._count > self._most or self._bytes > self._most_bytes):
            self._bytes -= self._sizes[self._dropped]
            self._dropped += 1
        if self._dropped > len(self._sizes) // _SLACK:
            self._cut()

    def _cut(self) -> None:
        """Lets go of what is dropped; now and then, as that moves all the others."""
        del self._publications[: self._dropped], self._sizes[: self._dropped]
        self._dropped = 0

    def piece(self, cursor: int, filters: Sequence[Filter], most: int, most_bytes: int) -> tuple[list[Routed], int]:
        """What matches any filter after an offset, of what is kept, and up to which offset that is all.

        So many publications are looked through at most, and what matches has so many bytes, if it is more than one.
        """
        begin = bisect_right(self._publications, cursor, self._dropped, key=lambda each: each.offset)
        matches, found, size = _matcher(tuple(filters)), list[Routed](), 0
        for publication in self._publications[begin : begin + most]:
            if not matches(publication.content):
                continue
            size += len(_encode(publication))
            if found and size > most_bytes:
                return found, publication.offset - 1
            found.append(publication)
        looked = min(begin + most, len(self._publications)) - self._dropped
        return found, max(cursor, self.oldest - 1 + looked)


class _Remembered:
    """When each publisher was last seen, and where the last is that it has in the log.

    Time goes on from what was kept, whatever the clock says: it is that for which the head has been running.
    """

    def __init__(self, kept: KeptLog) -> None:
        self._age = self._now = kept.age
        self._began: float | None = None
        self._seen = {publisher: kept.seen.get(publisher, kept.age) for publisher in kept.sequences}
        self.offsets = dict.fromkeys(kept.sequences, 0) | {each.publisher: each.offset for each in kept.publications}
        self.floor = kept.floor

    def pass_time(self, now: float) -> None:
        """It is so late."""
        if self._began is None:
            self._began = now
        self._now = self._age + now - self._began

    def see(self, publisher: str) -> None:
        """It is here, or was until now."""
        self._seen[publisher] = self._now

    def store(self, publications: Iterable[Routed]) -> None:
        """These are in the log."""
        for each in publications:
            self._seen[each.publisher], self.offsets[each.publisher] = self._now, each.offset

    def unseen(self, seconds: float) -> list[str]:
        """Clients' names that were not seen for so long, the longest first."""
        since = self._now - seconds
        old = [(at, name) for name, at in self._seen.items() if at <= since and not name.startswith(OWN_NAMES)]
        return [name for _, name in sorted(old)]

    def drop(self, publisher: str) -> None:
        """It is not known any more."""
        self._seen.pop(publisher, None)
        self.offsets.pop(publisher, None)


def excess(sizes: Sequence[int], most: int, most_bytes: float) -> int:
    """How many of the oldest of a log are too many, or too large; the latest is always kept."""
    count = max(0, len(sizes) - most)
    size = sum(sizes[count:])
    while size > most_bytes and count < len(sizes) - 1:
        size -= sizes[count]
        count += 1
    return count


def owner(name: str) -> str:
    """Whose a name is: what comes before the first ``+``."""
    return name.partition("+")[0]


@lru_cache(maxsize=4)
def _matcher(filters: tuple[Filter, ...]) -> Callable[[Publication], bool]:
    """Whether any of them matches; who fetches piece after piece has the same again."""
    if len(filters) == 1:
        return filters[0].matches
    wanted = FilterSet()
    for filter in filters:
        wanted.insert(filter)
    return wanted.matches_any


_encode = msgspec.json.Encoder().encode

"""A head's log: what was published to it, for those who come back. The only place where publications are kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from tocsin.content.filter import Filter
from tocsin.content.poset import Poset
from tocsin.content.values import Value
from tocsin.overlay.messages import Routed


class KeptLog(msgspec.Struct):
    """What is stored of a log: the latest publications, the last offset, and the last number of each publisher."""

    publications: list[Routed] = []
    last: int = 0
    sequences: dict[str, int] = {}


class ReplayLog:
    """Publications by offset, from 1 on. What was appended is there when it is stored.

    Args:
        head: whose log it is.
        kept: what was stored before.
        most: how many publications are kept.
    """

    def __init__(self, head: str, kept: KeptLog, most: int) -> None:
        self._head, self._most = head, most
        self._publications = kept.publications[-most:]
        self._taken, self._stored = dict(kept.sequences), dict(kept.sequences)
        self.last = kept.last
        self._waiting: list[Routed] = []

    @property
    def oldest(self) -> int:
        """The first offset of which everything is kept."""
        return self.last - len(self._publications) + 1

    @property
    def publishers(self) -> int:
        """How many publishers it knows a number of."""
        return len(self._taken)

    def sequence(self, publisher: str) -> int:
        """The last number of a publisher that is stored."""
        return self._stored.get(publisher, 0)

    def append(self, publisher: str, sequence: int, content: dict[str, Value]) -> Routed | None:
        """A publication to be stored; None if one with that number, or a later one, is or will be."""
        if sequence <= self._taken.get(publisher, 0):
            return None
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
        self._stored.update((each.publisher, each.sequence) for each in done)
        self.last += len(done)
        # Trimmed now and then, as that moves all of them.
        if len(self._publications) > 2 * self._most:
            del self._publications[: -self._most]
        return done

    def after(self, cursor: int, filters: Sequence[Filter]) -> list[Routed]:
        """What matches any filter after an offset, of what is kept."""
        begin = bisect_right(self._publications, cursor, key=lambda each: each.offset)
        if len(filters) == 1:
            return [each for each in self._publications[begin:] if filters[0].matches(each.content)]
        wanted = Poset()
        for filter in filters:
            wanted.insert(filter)
        return [each for each in self._publications[begin:] if wanted.matching(each.content)]

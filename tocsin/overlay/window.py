"""Which of an edge's fetches are under way, so that what was missed takes a bounded part of its link."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf
from typing import NamedTuple


class _Fetch(NamedTuple):
    """The heads that are yet to answer, the connections for which it is, and until when it counts."""

    heads: set[str]
    clients: frozenset[int]
    until: float


class FetchWindow:
    """Counts the pieces that are yet to come, so that there is always room for what is published meanwhile.

    Args:
        most: no fetch begins while so many are to come; one from several heads may take them beyond that.
        seconds: after which time they count no more, as from a head that is stuck: nobody waits for it for longer.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._fetches: dict[str, _Fetch] = {}

    @property
    def is_open(self) -> bool:
        """Whether another fetch may begin."""
        return self.awaited < self._most

    @property
    def awaited(self) -> int:
        """How many pieces are yet to come."""
        return sum(len(fetch.heads) for fetch in self._fetches.values())

    def begin(self, id: str, heads: Collection[str], clients: Iterable[int], now: float) -> None:
        """A fetch is sent, which these heads will answer."""
        if heads:
            self._fetches[id] = _Fetch(set(heads), frozenset(clients), now + self._seconds)

    def answer(self, id: str, head: str) -> frozenset[int]:
        """A head has answered a fetch; for whom it was, if that was the last."""
        fetch = self._fetches.get(id)
        if fetch is None:
            return frozenset()
        fetch.heads.discard(head)
        return frozenset() if fetch.heads else self._fetches.pop(id).clients

    def is_for(self, client: int) -> bool:
        """Whether anything is under way for a connection."""
        return any(client in fetch.clients for fetch in self._fetches.values())

    def expire(self, now: float) -> frozenset[int]:
        """Gives up what has been under way for too long; for whom it was."""
        late = [id for id, fetch in self._fetches.items() if fetch.until <= now]
        return frozenset().union(*(self._fetches.pop(id).clients for id in late))

    def wake(self) -> float:
        """When the next is given up."""
        return min((fetch.until for fetch in self._fetches.values()), default=inf)

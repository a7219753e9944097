"""People with alerts: each subscribes by content, and says what it is told."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Final, Self

from tocsin.apps.stocks.interests import draw_predicates
from tocsin.apps.stocks.quotes import CLASS, Quotes
from tocsin.client import connect
from tocsin.content.filter import conjunction
from tocsin.content.predicate import Comparison, Predicate
from tocsin.overlay.client import ContentSubscription, HeadCursor, Note
from tocsin.tasks import until_all_end

BOARDS: Final = 2
# Who comes at the same time.
_DOOR: Final = 20

Told = Callable[[str, Note], None]


def hang_boards(edges: int) -> dict[str, list[Predicate]]:
    """Boards in trading rooms, some at each edge, which show all quotes."""
    names = [f"board-{number}" for number in range(1, BOARDS * edges + 1)]
    return {name: [Predicate("class", Comparison.EQUAL, (CLASS,))] for name in names}


def draw_alerts(seed: int, people: int, quotes: Quotes) -> dict[str, list[Predicate]]:
    """What each wants, by the templates of the PADRES evaluation."""
    random = Random(f"{seed}-alerts")
    return {f"p{number}": draw_predicates(random, quotes) for number in range(1, people + 1)}


class People:
    """All who have alerts, connected while entered. All people come to the first edge, and know of the others.

    Args:
        alerts: what each of them wants.
        boards: what each board shows; they come to the edges in turn.
        edges: their URLs.
        heads: their names.
        told: called with each publication that somebody gets.
    """

    def __init__(
        self,
        alerts: dict[str, list[Predicate]],
        boards: dict[str, list[Predicate]],
        edges: Sequence[str],
        heads: Sequence[str],
        told: Told,
    ) -> None:
        self._wanted, self._edges, self._told = boards | alerts, edges, told
        self._home = dict.fromkeys(alerts, 0) | {board: number % len(edges) for number, board in enumerate(boards)}
        self._begin = {head: HeadCursor(0) for head in heads}
        self._subscriptions: dict[str, ContentSubscription] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._where: dict[str, str | None] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reading in self._reading.values():
            reading.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)
        await self._stack.aclose()

    @property
    def wanted(self) -> Mapping[str, Sequence[Predicate]]:
        """What each wants, boards as well."""
        return self._wanted

    async def gather(self) -> None:
        """Returns when everybody is served, with everything from the beginning of each head's log."""
        door = asyncio.Semaphore(_DOOR)

        async def come(person: str) -> None:
            async with door:
                await self._come(person)

        await until_all_end(come(person) for person in self._wanted)
        self._where = {person: each.edge for person, each in self._subscriptions.items()}

    async def watch(self) -> None:
        """Raises what ends somebody's subscription."""
        await asyncio.gather(*self._reading.values())

    def moves(self) -> Counter[tuple[str, str]]:
        """Who has gone from one edge to another since the last time, by their URLs."""
        moves: Counter[tuple[str, str]] = Counter()
        for person, subscription in self._subscriptions.items():
            before, now = self._where[person], subscription.edge
            if before and now and before != now:
                moves[before, now] += 1
            self._where[person] = now or before
        return moves

    async def _come(self, person: str) -> None:
        home = self._home[person]
        edges = [*self._edges[home:], *self._edges[:home]]
        me = await self._stack.enter_async_context(connect(edges, name=person))
        subscription = await me.subscribe(where=str(conjunction(self._wanted[person])), cursors=self._begin)
        self._subscriptions[person] = subscription
        self._reading[person] = asyncio.create_task(self._read(person, subscription))

    async def _read(self, person: str, subscription: ContentSubscription) -> None:
        async for note in subscription:
            self._told(person, note)


def describe(where: str) -> str:
    """A filter as one would say it: without the class, which all have."""
    parts = [part for part in where.split(" and ") if not part.startswith("class ")]
    return " and ".join(parts) or "all quotes"


def clock() -> str:
    """The time of day."""
    return time.strftime("%H:%M:%S")

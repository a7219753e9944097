"""Publishers of stock quotes, each with some of the symbols, at an even rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

from tocsin.apps.stocks.quotes import Quote, Quotes
from tocsin.client import connect
from tocsin.tasks import until_all_end

Published = Callable[[str, Quote], None]


class Market:
    """Publishers that take turns with the heads, and publish their symbols' quotes in turn, day after day.

    Args:
        heads: their URLs.
        names: of the publishers, which have published nothing before; no more than there are symbols.
        rate: publications per second, of all together.
        published: called with each quote just before it is published, in the order of its publisher.
    """

    def __init__(
        self, quotes: Quotes, heads: Sequence[str], names: Sequence[str], rate: float, published: Published
    ) -> None:
        self._quotes, self._heads, self._names, self._published = quotes, heads, names, published
        self._pause = len(names) / rate

    async def open(self, closing: asyncio.Event) -> None:
        """Publishes until ``closing``; when it returns, all that was published is stored."""
        await until_all_end(self._publish(number, closing) for number in range(len(self._names)))

    async def _publish(self, number: int, closing: asyncio.Event) -> None:
        name, loop = self._names[number], asyncio.get_running_loop()
        async with connect(self._heads[number % len(self._heads)], name=name) as me:
            begun = loop.time() + self._pause * number / len(self._names)
            for turn, quote in enumerate(self._in_turn(number)):
                if await _wait(closing, begun + turn * self._pause - loop.time()):
                    return
                self._published(name, quote)
                await me.publish(quote)

    def _in_turn(self, number: int) -> Iterator[Quote]:
        symbols = self._quotes.symbols[number :: len(self._names)]
        for day in cycle(range(min(len(self._quotes.by_symbol[symbol]) for symbol in symbols))):
            for symbol in symbols:
                yield self._quotes.by_symbol[symbol][day]


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Waits, and no longer than until the event; whether that has come."""
    try:
        await asyncio.wait_for(event.wait(), max(seconds, 0))
    except TimeoutError:
        return False
    return True

"""Real processes: a head, three edges, 300 subscribers. An edge is killed while subscribers migrate from it, then the
head, which is started again: nothing is lost or twice."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

import httpx
import msgspec
import pytest

from tests.ports import free_port
from tests.waiting import SECONDS, until_async
from tocsin.content.language import parse
from tocsin.overlay.client import ContentSubscription, OverlayConnection, connect
from tocsin.overlay.server.status import OverlayFigures

pytestmark = pytest.mark.process

SUBSCRIBERS: Final = 300
PUBLISHERS: Final = 3
PACE: Final = 0.05
"""Seconds between two publications of a publisher, as machines that run tests are small."""
SYMBOLS: Final = ("YHOO", "IBM", "MSFT", "ORCL")
EAGER: Final = {
    "bandwidth": 300_000,
    "rate_seconds": 2,
    "report_seconds": 0.3,
    "detect_seconds": 0.4,
    "samples": 20,
    "sampling_seconds": 2,
    "stabilize_seconds": 1,
}
"""Edges that are loaded by little, and do something about it at once."""
LAST: Final = "END"


class Broker:
    """A head or an edge in a process of its own, which keeps its port when it is started again."""

    def __init__(self, role: str, **settings: object) -> None:
        flags = [f"--set=overlay.{name}={value}" for name, value in settings.items()]
        self._command = [sys.executable, "-m", "tocsin", *flags, "overlay", role]
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    async def start(self) -> None:
        """Returns when it listens."""
        self._process = await asyncio.create_subprocess_exec(*self._command, stderr=asyncio.subprocess.PIPE)
        said = b""
        async with asyncio.timeout(SECONDS):
            while not (found := re.search(rb"listens on (ws://\S+)", said)):
                line = await self._stderr.readline()
                assert line, said.decode()
                said += line
        self.url = found[1].decode()
        self._reading = asyncio.create_task(self._stderr.read())

    async def end(self, number: signal.Signals) -> None:
        """Returns when it is gone."""
        assert self._process
        if self._process.returncode is None:
            self._process.send_signal(number)
        await self._process.wait()
        await self._reading

    @property
    def _stderr(self) -> asyncio.StreamReader:
        assert self._process
        assert self._process.stderr
        return self._process.stderr


@asynccontextmanager
async def started(role: str, **settings: object) -> AsyncIterator[Broker]:
    """A broker, stopped in the end."""
    broker = Broker(role, **settings)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.end(signal.SIGTERM)


def wanted(random: Random) -> str:
    """A filter; everybody wants to know when it is over."""
    return f"symbol in ('{random.choice(SYMBOLS)}', '{LAST}') and high > {random.randrange(50)}"


async def read(subscription: ContentSubscription) -> list[tuple[str, int]]:
    """All that came until every publisher has said that it is over."""
    notes, over = [], 0
    async for note in subscription:
        notes.append((note.publisher, note.sequence))
        over += note.content["symbol"] == LAST
        if over == PUBLISHERS:
            break
    return notes


class Ticker:
    """Publishes again and again, each when the one before is stored; ``contents`` are all that were."""

    def __init__(self, publisher: OverlayConnection, random: Random) -> None:
        self.name, self._publisher, self._random = publisher.name, publisher, random
        self.contents: list[dict[str, str | float]] = []
        self._over = False
        self._task = asyncio.create_task(self._run())

    async def more(self, count: int) -> None:
        """Returns when so many more are stored."""
        enough = len(self.contents) + count
        await until_async(lambda: len(self.contents) >= enough or self._task.done(), "more publications")

    async def finish(self) -> None:
        """Says that it is over, as the last thing."""
        self._over = True
        await self._task
        await self._publish(LAST, 100.0)

    async def _run(self) -> None:
        while not self._over:
            await self._publish(self._random.choice(SYMBOLS), float(self._random.randrange(100)))
            await asyncio.sleep(PACE)

    async def _publish(self, symbol: str, high: float) -> None:
        content: dict[str, str | float] = {"symbol": symbol, "high": high}
        await self._publisher.publish(content)
        self.contents.append(content)


async def migrating(edges: list[Broker]) -> Broker:
    """An edge that has sent some of its subscribers to another one, and waits for them."""
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:

        async def found() -> Broker | None:
            for edge in edges:
                answer = await client.get(f"{edge.url.replace('ws', 'http', 1)}/status")
                figures = msgspec.json.decode(answer.content, type=OverlayFigures)
                if (figures.state, figures.session) == ("BUSY", "migrating"):
                    return edge
            return None

        return await until_async(found, "session", 2 * SECONDS)


async def test_an_edge_is_killed_in_a_session_and_the_head_restarted_and_nothing_is_lost_or_twice(
    tmp_path: Path,
) -> None:
    random = Random(14)
    async with AsyncExitStack() as stack:
        head = await stack.enter_async_context(started("head", name="h", directory=tmp_path, port=free_port()))
        edges = [
            await stack.enter_async_context(started("edge", name=name, head=head.url, port=0, **EAGER))
            for name in "abc"
        ]
        urls = [edge.url for edge in edges]
        clients = [await stack.enter_async_context(connect(*urls)) for _ in range(SUBSCRIBERS)]
        # All come to the first edge, which has much more to do than the others then.
        subscriptions = [await client.subscribe(wanted(random)) for client in clients]
        reading = asyncio.gather(*map(read, subscriptions))
        publishers = [await stack.enter_async_context(connect(head.url, name=f"p{n}")) for n in range(PUBLISHERS)]
        tickers = [Ticker(publisher, random) for publisher in publishers]
        await (await migrating(edges)).end(signal.SIGKILL)
        await asyncio.gather(*(ticker.more(10) for ticker in tickers))
        await head.end(signal.SIGKILL)
        await head.start()
        await asyncio.gather(*(ticker.more(10) for ticker in tickers))
        await asyncio.gather(*(ticker.finish() for ticker in tickers))
        async with asyncio.timeout(2 * SECONDS):
            found = await reading
    for subscription, notes in zip(subscriptions, found, strict=True):
        filter = parse(subscription.where)
        for ticker in tickers:
            expected = [number for number, each in enumerate(ticker.contents, 1) if filter.matches(each)]
            assert [sequence for publisher, sequence in notes if publisher == ticker.name] == expected

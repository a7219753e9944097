"""Real processes: a head, three edges, many subscribers. One edge is killed, and the head; nothing is lost or twice."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.waiting import SECONDS
from tocsin.content.language import parse
from tocsin.overlay.client import ContentSubscription, OverlayConnection, connect

pytestmark = pytest.mark.process

SUBSCRIBERS: Final = 60
PUBLISHERS: Final = 3
PUBLICATIONS: Final = 120
SYMBOLS: Final = ("YHOO", "IBM", "MSFT", "ORCL")
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


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


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


async def publish(publisher: OverlayConnection, contents: list[dict[str, str | float]]) -> None:
    """One after the other, each stored before the next."""
    for content in contents:
        await publisher.publish(content)


async def test_an_edge_and_the_head_are_killed_and_nothing_is_lost_or_twice(tmp_path: Path) -> None:
    random = Random(14)
    contents = {
        f"p{number}": [
            {"symbol": random.choice(SYMBOLS), "high": float(random.randrange(100))} for _ in range(PUBLICATIONS)
        ]
        for number in range(PUBLISHERS)
    }
    last: dict[str, str | float] = {"symbol": LAST, "high": 100.0}
    async with AsyncExitStack() as stack:
        head = await stack.enter_async_context(started("head", name="h", directory=tmp_path, port=free_port()))
        edges = [await stack.enter_async_context(started("edge", name=name, head=head.url, port=0)) for name in "abc"]
        urls = [edge.url for edge in edges]
        subscriptions = []
        for number in range(SUBSCRIBERS):
            first = number % len(urls)
            me = await stack.enter_async_context(connect(*urls[first:], *urls[:first]))
            subscriptions.append(await me.subscribe(wanted(random)))
        reading = asyncio.gather(*map(read, subscriptions))
        publishers = {name: await stack.enter_async_context(connect(head.url, name=name)) for name in contents}
        third = PUBLICATIONS // 3

        async def part(first: int, end: int) -> None:
            await asyncio.gather(*(publish(publishers[name], each[first:end]) for name, each in contents.items()))

        await part(0, third)
        publishing = asyncio.create_task(part(third, 2 * third))
        await edges[0].end(signal.SIGKILL)
        await publishing
        publishing = asyncio.create_task(part(2 * third, PUBLICATIONS))
        await head.end(signal.SIGKILL)
        await head.start()
        await publishing
        await asyncio.gather(*(publish(each, [last]) for each in publishers.values()))
        async with asyncio.timeout(2 * SECONDS):
            found = await reading
    for subscription, notes in zip(subscriptions, found, strict=True):
        filter = parse(subscription.where)
        for name, published in contents.items():
            expected = [number for number, each in enumerate([*published, last], 1) if filter.matches(each)]
            assert [sequence for publisher, sequence in notes if publisher == name] == expected

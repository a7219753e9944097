"""What publishing costs a program that uses the client library: people who tell once in a second where they are.

The broker is scripted and has a core of its own: what is measured is the processor time of the publishers' thread.
Beside it stands what anybody spends who uses the ``websockets`` library itself: everybody sends a text of the same size
and waits for an answer of the same size.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

import msgspec
import uvloop
from websockets.asyncio.client import connect

import tocsin
from tocsin.bench.broker import targets
from tocsin.bench.broker.contestant import Cores
from tocsin.bench.broker.scripted import scripted_servers
from tocsin.bench.report import Figure, quantile
from tocsin.model.subscriber import Login, Publish

_FEED: Final = "locations"
_LOCATION: Final = {"x": 2250.4, "y": 1700.2, "at": "2026-01-01T00:00:00Z"}
_AT_ONCE: Final = 100
# Everybody publishes once in a second, in so many parts of it some of them.
_PARTS: Final = 50
_WARM_SECONDS: Final = 2

Say = Callable[[], Awaitable[object]]
"""Publishes once, and waits for the answer."""
Enter = Callable[[int, int], AbstractAsyncContextManager[Say]]
"""Connects somebody, by a number, to the broker at a port."""


class Spent:
    """The processor time of a thread that publishes, and how late it was with what it had to do."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.publications = 0
        self.late: list[float] = []

    @property
    def each(self) -> float:
        """Microseconds of processor time for a publication."""
        return 1e6 * self.seconds / self.publications


def publishing(cores: Cores, people: int, seconds: float, say: Callable[[str], None]) -> Iterator[Figure]:
    """One after the other: with ``websockets`` alone, and with the library."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    say(f"{people:,} people publish with websockets alone")
    bare = _measure_cost(_bare, cores, people, seconds)
    say(f"{people:,} people publish with the client library")
    yield from _figures(_measure_cost(_library, cores, people, seconds), bare, people)


def _measure_cost(enter: Enter, cores: Cores, people: int, seconds: float) -> Spent:
    with scripted_servers(cores[0]) as port, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(partial(enter, port), people, seconds))


def _figures(ours: Spent, bare: Spent, people: int) -> Iterator[Figure]:
    group = f"{people:,} people publish their location once a second"
    cores, most = ours.each * people / 1e6, targets.PUBLISHING
    target = f"at most {most:g} cores"
    yield Figure(group, "processor time of a publication", ours.each, "µs", ours.each / bare.each, "websockets alone")
    yield Figure(group, "all of them", cores, "cores", target=target, met=cores <= most)
    yield Figure(group, "publications sent later than they were due, p99", 1e3 * quantile(ours.late, 0.99), "ms")


async def _measure(enter: Callable[[int], AbstractAsyncContextManager[Say]], people: int, seconds: float) -> Spent:
    async with AsyncExitStack() as stack:
        door = asyncio.Semaphore(_AT_ONCE)

        async def come(number: int) -> Say:
            async with door:
                return await stack.enter_async_context(enter(number))

        everybody = await asyncio.gather(*(come(number) for number in range(people)))
        await _publish(everybody, _WARM_SECONDS, Spent())
        # A program with so many connections does not look through all of them for garbage again and again.
        gc.collect()
        gc.freeze()
        spent = Spent()
        began = time.thread_time()
        await _publish(everybody, seconds, spent)
        spent.seconds = time.thread_time() - began
        return spent


async def _publish(everybody: list[Say], seconds: float, spent: Spent) -> None:
    began, under_way = time.monotonic(), set[asyncio.Future[object]]()
    for turn in range(round(seconds * _PARTS)):
        due = began + turn / _PARTS
        await asyncio.sleep(due - time.monotonic())
        for say in everybody[turn % _PARTS :: _PARTS]:
            task = asyncio.ensure_future(say())
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            spent.publications += 1
            spent.late.append(time.monotonic() - due)
    while under_way:
        await asyncio.wait(under_way)


@asynccontextmanager
async def _library(port: int, number: int) -> AsyncIterator[Say]:
    location = {"userId": f"p{number}", **_LOCATION}
    async with tocsin.connect(f"http://127.0.0.1:{port}", f"token-{number}") as me:
        yield lambda: me.publish(_FEED, [location])


@asynccontextmanager
async def _bare(port: int, number: int) -> AsyncIterator[Say]:
    location = msgspec.Raw(msgspec.json.encode({"userId": f"p{number}", **_LOCATION}))
    text = msgspec.json.encode(Publish(1, _FEED, [location])).decode()
    async with connect(f"ws://127.0.0.1:{port}/subscriber", compression=None, open_timeout=None) as socket:
        await socket.send(msgspec.json.encode(Login("token")).decode())
        await socket.recv()

        async def say() -> object:
            await socket.send(text)
            return await socket.recv()

        yield say

"""A link whose other end makes no sense, or does not take what it is told: it is lost, and dialled again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tocsin.broker import events
from tocsin.broker.backoff import Backoff
from tocsin.broker.server import links
from tocsin.broker.server.driver import BrokerDriver
from tocsin.broker.server.links import CoordinatorLink
from tocsin.model.coordination import Beat, Refused

REFUSED = b'{"type":"refused","code":"invalid","message":"what?"}'


class Driver:
    """Hears what a link tells, as a broker's driver does."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[str | events.Event] = asyncio.Queue()
        self.connecting: Callable[[], None] = lambda: None
        self.faults = 0

    def connected(self, link: str) -> None:
        self.told.put_nowait(f"{link} is up")
        self.connecting()

    def lost(self, link: str) -> None:
        self.told.put_nowait(f"{link} is lost")

    def feed(self, event: events.Event) -> None:
        if self.faults:
            self.faults -= 1
            raise RuntimeError("a fault of ours")
        self.told.put_nowait(event)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "after", lambda *_: 0.0)


@asynccontextmanager
async def linked(driver: Driver, coordinator: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[None]:
    """A broker's link to a coordinator that does this with each connection."""
    async with serve(coordinator, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        link = CoordinatorLink(cast(BrokerDriver, driver), f"http://127.0.0.1:{port}", "token", "")
        driver.connecting = lambda: link.send(Beat())
        keeping = asyncio.create_task(link.keep())
        yield
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def says(*words: bytes | str) -> Callable[[ServerConnection], Awaitable[None]]:
    """A coordinator that says one of these on each connection, and waits."""
    left = list(words)

    async def coordinator(socket: ServerConnection) -> None:
        await socket.send(left.pop(0))
        await socket.wait_closed()

    return coordinator


@pytest.mark.parametrize(
    "nonsense",
    ["", "<html>", "[]", '{"type":"nonsense"}', '{"type":"refused"}', b"\xff\xfe", "[" * 100_000],
    ids=["nothing", "html", "a list", "an unknown type", "half", "no text", "very deep"],
)
async def test_who_says_what_cannot_be_read_is_left_and_dialled_again(nonsense: bytes | str) -> None:
    driver = Driver()
    async with linked(driver, await says(nonsense, REFUSED)):
        assert [await driver.told.get() for _ in range(4)] == [
            "coordinator is up",
            "coordinator is lost",
            "coordinator is up",
            events.Told(Refused("invalid", "what?")),
        ]


async def test_a_fault_here_costs_the_link_and_nothing_else() -> None:
    driver = Driver()
    driver.faults = 1
    async with linked(driver, await says(REFUSED, REFUSED)):
        assert [await driver.told.get() for _ in range(4)] == [
            "coordinator is up",
            "coordinator is lost",
            "coordinator is up",
            events.Told(Refused("invalid", "what?")),
        ]


async def test_who_does_not_take_what_it_is_told_is_left_and_told_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MOST_WAITING", 3)
    driver, heard = Driver(), asyncio.Queue[bytes | str]()

    async def coordinator(socket: ServerConnection) -> None:
        async for message in socket:
            heard.put_nowait(message)

    async with linked(driver, coordinator):
        say, rounds = driver.connecting, iter([4, 3])

        def say_much() -> None:
            for _ in range(next(rounds)):
                say()

        driver.connecting = say_much
        assert [await driver.told.get() for _ in range(3)] == [
            "coordinator is up",
            "coordinator is lost",
            "coordinator is up",
        ]
        assert [await heard.get() for _ in range(3)] == ['{"type":"beat"}'] * 3

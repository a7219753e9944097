"""Subscribers who read slowly, or not at all, and what they cost others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosedError

from tests.overlay.server.running import Talk, edge, head, talk
from tests.waiting import SECONDS
from tocsin.overlay.client import HeadCursor, connect
from tocsin.overlay.dialogue import Began, Gap, Note, Passed, Subscribe

LONG = dict.fromkeys("abcd", "x" * 1000)
PUBLICATIONS = 1800
"""So long: more than the sockets between two programs take without being read."""


@asynccontextmanager
async def narrow(url: str) -> AsyncIterator[Talk]:
    """A subscriber's connection that takes little at a time."""
    where = urlsplit(url)
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.connect((where.hostname, where.port))
    wire.setblocking(False)
    async with dial(f"{url}/client", sock=wire, proxy=None, max_queue=1, ping_interval=None) as opened:
        yield Talk(opened)


async def publish(root: str, count: int, first: int = 0) -> None:
    async with connect(root, name="p") as publisher:
        await asyncio.gather(*(publisher.publish({"n": first + each, **LONG}) for each in range(count)))


async def read(talk: Talk, count: int) -> list[int]:
    """The offsets of the next publications, until it has had so many."""
    found: list[int] = []
    while len(found) < count:
        message = await talk.hear()
        assert isinstance(message, Note | Began | Passed | Gap)
        if isinstance(message, Note):
            found.append(message.offset)
    return found


@pytest.mark.slow
async def test_who_comes_back_and_does_not_read_is_sent_a_piece_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"waiting_bytes": 512 * 1024, "fetch_bytes": 128 * 1024, "link_bytes": 1024 * 1024}
    async with head(tmp_path, **limits) as root, edge(root, **limits) as url:
        await publish(root, PUBLICATIONS)
        async with narrow(url) as slow, connect(url) as quick:
            # All of it at once would be more than waits for anybody, here and on the link of the brokers.
            await slow.say(Subscribe("slow", "n >= 0", {"h": HeadCursor(0)}))
            assert isinstance(await slow.hear(), Began)
            subscription = await quick.subscribe("n >= 0", cursors={"h": HeadCursor(0)})
            async with asyncio.timeout(2 * SECONDS):
                for offset in range(1, PUBLICATIONS + 1):
                    assert (await anext(subscription)).offset == offset
            await publish(root, 1, PUBLICATIONS)
            assert (await anext(subscription)).offset == PUBLICATIONS + 1
            assert await read(slow, PUBLICATIONS + 1) == list(range(1, PUBLICATIONS + 2))


@pytest.mark.slow
async def test_who_does_not_read_what_is_live_is_cut_off_after_it_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"waiting_bytes": 128 * 1024, "fetch_bytes": 32 * 1024}
    async with head(tmp_path, **limits) as root, edge(root, **limits) as url:
        async with narrow(url) as slow:
            await slow.say(Subscribe("slow", "n >= 0"))
            began = await slow.hear()
            assert isinstance(began, Began)
            await publish(root, PUBLICATIONS)
            had = list[int]()
            with suppress(ConnectionClosedError):
                while True:
                    had += await read(slow, 1)
            assert (await slow.closed())[0] == 4429
        assert had == list(range(1, len(had) + 1))
        assert 0 < len(had) < PUBLICATIONS
        async with narrow(url) as slow:
            await slow.say(Subscribe("slow", "n >= 0", {"h": HeadCursor(len(had), began.incarnation)}))
            assert await read(slow, PUBLICATIONS - len(had)) == list(range(len(had) + 1, PUBLICATIONS + 1))


@pytest.mark.slow
async def test_who_asks_for_everything_again_and_again_and_does_not_read_takes_the_link_from_nobody(
    tmp_path: Path,
) -> None:
    limits: dict[str, Any] = {"fetch_bytes": 128 * 1024, "link_bytes": 1024 * 1024, "fetches": 4}
    async with head(tmp_path, **limits) as root, edge(root, **limits) as url, AsyncExitStack() as stack:
        await publish(root, PUBLICATIONS)
        honest = await stack.enter_async_context(talk(url))
        await honest.say(Subscribe("honest", "n >= 0"))
        assert isinstance(await honest.hear(), Began)
        for number in range(9):
            greedy = await stack.enter_async_context(narrow(url))
            # It would not read either that it is closed.
            stack.callback(greedy.socket.transport.abort)
            for again in range(20):
                await greedy.say(Subscribe(f"greedy-{number}", f"n >= {again % 2}", {"h": HeadCursor(0)}))
        # With the link closed, or the way interrupted, it would hear that it begins again.
        for number in range(20):
            await publish(root, 1, PUBLICATIONS + number)
            note = await honest.hear()
            while isinstance(note, Passed):
                note = await honest.hear()
            assert isinstance(note, Note)
            assert note.offset == PUBLICATIONS + number + 1

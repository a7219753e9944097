"""Real heads and edges on real sockets, in the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from tests.running import running
from tests.waiting import SECONDS
from tocsin.overlay.dialogue import ToEdge, ToHead, ToPublisher, ToSubscriber
from tocsin.overlay.server.serve import run_edge, run_head
from tocsin.settings.overlay import OverlaySettings

_TOLD: msgspec.json.Decoder[ToSubscriber | ToPublisher] = msgspec.json.Decoder(ToSubscriber | ToPublisher)


@asynccontextmanager
async def head(directory: Path, name: str = "h", **more: Any) -> AsyncIterator[str]:
    """A head's URL. What is begun last must end first, as a signal stops it."""
    settings = OverlaySettings(**{"name": name, "port": 0, "directory": directory / name, "mark_seconds": 0.05, **more})
    async with running(lambda listening: run_head(settings, listening=listening)) as url:
        yield url


@asynccontextmanager
async def edge(head: str, name: str = "e", **more: Any) -> AsyncIterator[str]:
    """An edge's URL."""
    settings = OverlaySettings(name=name, port=0, head=head, **more)
    async with running(lambda listening: run_edge(settings, listening=listening)) as url:
        yield url


class Talk:
    """A client's connection, message by message."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, *messages: ToEdge | ToHead) -> None:
        for message in messages:
            await self.socket.send(msgspec.json.encode(message), text=True)

    async def hear(self) -> ToSubscriber | ToPublisher:
        """The next message."""
        async with asyncio.timeout(SECONDS):
            return _TOLD.decode(await self.socket.recv())

    async def closed(self) -> tuple[int | None, str | None]:
        """How it was closed."""
        async with asyncio.timeout(SECONDS):
            await self.socket.wait_closed()
        return self.socket.close_code, self.socket.close_reason


@asynccontextmanager
async def talk(url: str, token: str = "") -> AsyncIterator[Talk]:
    """A connection of a publisher or a subscriber."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with connect(f"{url}/client", additional_headers=headers, proxy=None) as socket:
        yield Talk(socket)

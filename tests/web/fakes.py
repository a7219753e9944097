"""A broker that says what a test tells it to, for what a real one would do only by chance."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.server import Server, ServerConnection, serve

from tests.waiting import SECONDS


class FakeBroker:
    """Serves one connection at a time, the last one that came."""

    def __init__(self) -> None:
        self._connections: asyncio.Queue[ServerConnection] = asyncio.Queue()
        self._socket: ServerConnection | None = None
        self._server: Server | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        async def serve_one(socket: ServerConnection) -> None:
            await self._connections.put(socket)
            await socket.wait_closed()

        self._server = await serve(serve_one, "127.0.0.1", 0, compression=None)
        self.url = f"ws://127.0.0.1:{next(iter(self._server.sockets)).getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server
        self._server.close()
        await self._server.wait_closed()

    async def came(self) -> None:
        """Waits until somebody is connected."""
        async with asyncio.timeout(SECONDS):
            if self._socket is None:
                self._socket = await self._connections.get()

    async def heard(self) -> dict[str, Any]:
        """The next message."""
        assert self._socket
        async with asyncio.timeout(SECONDS):
            message: dict[str, Any] = json.loads(await self._socket.recv())
        return message

    async def say(self, type: str, **fields: object) -> None:
        """Says something."""
        assert self._socket
        await self._socket.send(json.dumps({"type": type, **fields}))

    async def say_nonsense(self) -> None:
        """Says what is no message."""
        assert self._socket
        await self._socket.send("nonsense")

    async def close(self, code: int) -> None:
        """Ends the connection of who is there, with a code."""
        assert self._socket
        await self._socket.close(code)
        await self.gone()

    async def gone(self) -> None:
        """Waits until whoever was here has left."""
        assert self._socket
        async with asyncio.timeout(SECONDS):
            await self._socket.wait_closed()
        self._socket = None

    async def end(self) -> None:
        """Loses who is there, without a word."""
        assert self._socket
        self._socket.transport.abort()
        await self.gone()


class FakeEdge(FakeBroker):
    """Serves subscribers."""

    async def subscribed(self, cursors: dict[str, list[Any]]) -> dict[str, Any]:
        """Somebody comes with these cursors, or says them again; what it says."""
        await self.came()
        message = await self.heard()
        assert (message["type"], message["cursors"]) == ("Subscribe", cursors)
        return message

    async def note(self, offset: int) -> None:
        """A publication."""
        await self.say("Note", head="h", offset=offset, publisher="p", sequence=offset, content={"high": offset})


class FakeHead(FakeBroker):
    """Serves a publisher called page, of what has the attribute high."""

    async def introduced(self, incarnation: str) -> None:
        """It comes, and knows this incarnation."""
        await self.came()
        assert await self.heard() == {"type": "Introduce", "publisher": "page", "incarnation": incarnation}

    async def published(self, count: int) -> list[tuple[int, float]]:
        """Numbers and highs of the next ones."""
        messages = [await self.heard() for _ in range(count)]
        assert {message["type"] for message in messages} == {"Publish"}
        return [(message["sequence"], message["content"]["high"]) for message in messages]

    async def left(self) -> list[int]:
        """Numbers of what it has sent before it leaves."""
        assert self._socket
        async with asyncio.timeout(SECONDS):
            return [json.loads(text)["sequence"] async for text in self._socket]

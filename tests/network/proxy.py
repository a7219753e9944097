"""A TCP proxy that a test stands between two processes, to make the network between them slow, broken or deaf."""

from __future__ import annotations

import asyncio
import socket
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_CHUNK: Final = 1 << 16
_HEAD_END: Final = b"\r\n\r\n"
# Closing with this sends a reset in place of an end.
_RESET: Final = struct.pack("ii", 1, 0)


class Hold(StrEnum):
    """How far a new connection gets before nothing more of it is forwarded, though it stays open."""

    ACCEPTED = "accepted"  # nothing passes: the WebSocket is never opened
    OPENED = "opened"  # the WebSocket is open, and nothing that is said on it arrives
    SAID = "said"  # what the client says arrives, and no answer comes back


@dataclass
class Conditions:
    """How connections fare, until it is changed.

    Args:
        delay: seconds that everything takes in each direction.
        rate: bytes per second in each direction; None for no bound.
        limit: bytes after which a connection is reset; None for no bound.
        frozen: nothing is forwarded and nothing closed: the connection is half open, and goes on when this ends.
        refusing: new connections are reset.
        hold: where new connections stop.
    """

    delay: float = 0.0
    rate: float | None = None
    limit: int | None = None
    frozen: bool = False
    refusing: bool = False
    hold: Hold | None = None


@dataclass(eq=False)
class Passage:
    """One connection through the proxy. ``dead`` ones forward nothing ever again, and close nothing."""

    client: StreamWriter
    hold: Hold | None
    server: StreamWriter | None = None
    passed: int = 0
    dead: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def reset(self) -> None:
        """Breaks both halves at once."""
        for task in self.tasks:
            task.cancel()
        for writer in (self.client, self.server):
            _abort(writer)

    def stops(self, upward: bool, head: bool) -> bool:
        """Whether bytes of this direction are held back, ``head`` while the WebSocket's opening is passed on."""
        if self.hold is None or self.hold is Hold.ACCEPTED:
            return self.hold is Hold.ACCEPTED
        return not head and (self.hold is Hold.OPENED or not upward)


class Proxy:
    """Forwards what comes to ``port`` to the server at ``target``, which need not be there yet.

    ``conditions`` may be set at any time. ``held`` is set when bytes of a connection are held back by its ``hold``.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.conditions = Conditions()
        self.port = 0
        self.held = asyncio.Event()
        self._passages: set[Passage] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    @property
    def connections(self) -> int:
        """How many connections pass through it now."""
        return len(self._passages)

    def set(self, conditions: Conditions) -> None:
        """Other conditions from now on."""
        self.conditions = conditions
        self.held.clear()
        self._changed.set()
        self._changed = asyncio.Event()

    def reset(self, choose: Callable[[Passage], bool] = lambda passage: True) -> int:
        """Breaks the connections there are, or those chosen; how many they were."""
        chosen = [passage for passage in self._passages if choose(passage)]
        for passage in chosen:
            passage.reset()
        return len(chosen)

    def lose(self, choose: Callable[[Passage], bool] = lambda passage: True) -> int:
        """Leaves the connections there are half open for ever, and lets new ones through; how many they were."""
        chosen = [passage for passage in self._passages if choose(passage)]
        for passage in chosen:
            passage.dead = True
        self._changed.set()
        self._changed = asyncio.Event()
        return len(chosen)

    async def is_holding(self) -> bool:
        """Whether bytes of a connection are held back by its ``hold``."""
        return self.held.is_set()

    def accept(self, client: StreamReader, writer: StreamWriter) -> None:
        """Passes one connection on, in a task of its own."""
        task = asyncio.create_task(self._serve(client, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Breaks all connections; returns when they are over."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # What is aborted is closed by the loop in its next round.
        await asyncio.sleep(0)

    async def _serve(self, client: StreamReader, writer: StreamWriter) -> None:
        if self.conditions.refusing:
            _abort(writer)
            return
        passage = Passage(writer, self.conditions.hold)
        self._passages.add(passage)
        try:
            server, passage.server = await asyncio.open_connection("127.0.0.1", self.target)
            passage.tasks = [
                asyncio.create_task(self._forward(passage, client, passage.server, upward=True)),
                asyncio.create_task(self._forward(passage, server, writer, upward=False)),
            ]
            await asyncio.wait(passage.tasks)
        except OSError:
            pass
        finally:
            self._passages.discard(passage)
            passage.reset()
            await asyncio.gather(*passage.tasks, return_exceptions=True)

    async def _forward(self, passage: Passage, source: StreamReader, sink: StreamWriter, upward: bool) -> None:
        """One direction; an end is passed on as an end, anything else as a reset."""
        head = True
        try:
            while chunk := await source.read(_CHUNK):
                await self._slowly(len(chunk))
                await self._while_frozen(passage)
                if head and _HEAD_END in chunk and passage.hold is not None:
                    chunk = await self._head(passage, chunk, sink, upward)
                    head = False
                if chunk and passage.stops(upward, head):
                    self.held.set()
                    await asyncio.get_running_loop().create_future()
                if not self._pass(passage, chunk, sink):
                    return
                await sink.drain()
            await self._while_frozen(passage)
            sink.write_eof()
        except OSError:
            passage.reset()

    async def _head(self, passage: Passage, chunk: bytes, sink: StreamWriter, upward: bool) -> bytes:
        """Passes the WebSocket's opening on; what comes after it."""
        end = chunk.index(_HEAD_END) + len(_HEAD_END)
        if passage.stops(upward, head=True):
            return chunk
        self._pass(passage, chunk[:end], sink)
        await sink.drain()
        return chunk[end:]

    def _pass(self, passage: Passage, chunk: bytes, sink: StreamWriter) -> bool:
        limit = self.conditions.limit
        room = len(chunk) if limit is None else max(0, limit - passage.passed)
        sink.write(chunk[:room])
        passage.passed += len(chunk)
        if room < len(chunk):
            passage.reset()
            return False
        return True

    async def _slowly(self, size: int) -> None:
        seconds = self.conditions.delay
        if self.conditions.rate is not None:
            seconds += size / self.conditions.rate
        if seconds:
            await asyncio.sleep(seconds)

    async def _while_frozen(self, passage: Passage) -> None:
        while passage.dead or self.conditions.frozen:
            await self._changed.wait()


@asynccontextmanager
async def proxy(target: int) -> AsyncIterator[Proxy]:
    """A proxy in front of a port of this machine, on a port of its own."""
    made = Proxy(target)
    server = await asyncio.start_server(made.accept, "127.0.0.1", 0)
    made.port = int(server.sockets[0].getsockname()[1])
    try:
        yield made
    finally:
        server.close()
        await made.close()
        await server.wait_closed()


def _abort(writer: StreamWriter | None) -> None:
    if writer is None or writer.transport.is_closing():
        return
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()

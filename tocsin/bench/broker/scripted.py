"""A coordinator and a broker that say yes to everything, in a process of their own: for measurements of clients."""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha1
from multiprocessing.connection import Connection
from typing import Final, cast

import msgspec
import uvloop

from tocsin.bench.broker.processes import kept_to
from tocsin.bench.broker.websocket import encode_frame
from tocsin.model.subscriber import VERSION, Login, Publish, Published, Request, Welcome

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_REQUEST: Final = msgspec.json.Decoder[Request](Request)
_TEXT, _CLOSE = 1, 8
_BACKLOG: Final = 4096
_END_SECONDS: Final = 10.0


@contextmanager
def scripted_servers(cores: set[int]) -> Iterator[int]:
    """While entered, it serves on the port that is given, on these cores."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_run, args=(there,), daemon=True)
    with kept_to(cores):
        process.start()
    there.close()
    try:
        yield here.recv()
    finally:
        here.close()
        process.join(_END_SECONDS)


class ScriptedConnection(asyncio.Protocol):
    """One connection: a question for a broker by HTTP, or a subscriber's WebSocket."""

    def __init__(self, port: int) -> None:
        self._port, self._came, self._open = port, bytearray(), False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody calls."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answers whatever is asked."""
        self._came += data
        if self._open:
            self._answer()
        elif (end := self._came.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._came[:end])
            del self._came[: end + 4]
            self._begin(head)

    def _begin(self, head: bytes) -> None:
        if b"upgrade: websocket" not in head.lower():
            body = msgspec.json.encode({"url": f"ws://127.0.0.1:{self._port}/subscriber"})
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            return
        key = head[head.lower().index(b"sec-websocket-key:") + 18 :].split(b"\r\n")[0].strip()
        accept = b64encode(sha1(key + _GUID).digest())
        upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %b\r\n\r\n" % accept
        self._transport.write(b"HTTP/1.1 101 Switching Protocols\r\n" + upgrade)
        self._open = True

    def _answer(self) -> None:
        for kind, text in _unmask(self._came):
            if kind == _CLOSE:
                self._transport.close()
                return
            request = _REQUEST.decode(text) if kind == _TEXT else None
            if isinstance(request, Login):
                self._say(Welcome("bench", "bench", VERSION, []))
            elif isinstance(request, Publish):
                self._say(Published(request.id, len(request.records)))

    def _say(self, answer: Welcome | Published) -> None:
        self._transport.write(encode_frame(msgspec.json.encode(answer)))


def _unmask(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """Takes a client's whole frames from the buffer: the kind of each, and what is in it."""
    while len(buffer) >= 2:
        size, start = buffer[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            size, start = int.from_bytes(buffer[2 : 2 + width], "big"), 2 + width
        if len(buffer) < start + 4 + size:
            return
        kind, mask = buffer[0] & 0x0F, bytes(buffer[start : start + 4])
        masked = int.from_bytes(buffer[start + 4 : start + 4 + size], "little")
        del buffer[: start + 4 + size]
        yield kind, (masked ^ int.from_bytes((mask * (size // 4 + 1))[:size], "little")).to_bytes(size, "little")


def _run(pipe: Connection) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(pipe))


async def _serve(pipe: Connection) -> None:
    """Until the other end of the pipe is closed."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    ports: list[int] = []
    server = await loop.create_server(lambda: ScriptedConnection(ports[0]), "127.0.0.1", 0, backlog=_BACKLOG)
    ports.append(server.sockets[0].getsockname()[1])
    loop.add_reader(pipe.fileno(), ended.set)
    pipe.send(ports[0])
    await ended.wait()
    server.close()

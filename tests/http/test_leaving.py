"""Clients that come and leave at once, or in the middle of something, leave nothing behind, whichever server it is."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import struct
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.certificate import certificate
from tests.http.places import PLACES, Place, data
from tests.network.proxy import proxy
from tests.waiting import until_async
from tests.web.browser import Browser
from tocsin.testing.sandbox import Sandbox
from tocsin.testing.serving import serving

HEAD: Final = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
UPGRADE: Final = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
WORDS: Final = {
    "nothing": b"",
    "half a request line": b"GET /hea",
    "half a header": HEAD + b"Autho",
    "half a body": b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nabc",
    "a whole request": HEAD + b"\r\n",
    "garbage": b"\x16\x03\x01\x00\xffgarbage\r\n\r\n",
    "half a frame": b"GET /subscriber HTTP/1.1\r\nHost: 127.0.0.1\r\n" + UPGRADE + b"\x81\xfe",
    "half a frame of a broker": b"GET /control?broker=north HTTP/1.1\r\nHost: 127.0.0.1\r\n" + UPGRADE + b"\x81\xfe",
}
# A close with this sends a reset in place of an end.
RESET: Final = struct.pack("ii", 1, 0)


@asynccontextmanager
async def sandbox(_: Path) -> AsyncIterator[int]:
    async with Sandbox("a") as made:
        yield urlsplit(made.url).port or 0


@asynccontextmanager
async def page(directory: Path) -> AsyncIterator[int]:
    async with serving(Browser("", directory).answer) as port:
        yield port


@asynccontextmanager
async def between(directory: Path) -> AsyncIterator[int]:
    async with data(directory) as target, proxy(target) as made:
        yield made.port


OF_TESTS: Final[dict[str, Place]] = {"sandbox": sandbox, "page": page, "proxy": between}


class Traces:
    """What is there now: open files, tasks, and the objects of connections. Complaints of the loop count as well."""

    def __init__(self) -> None:
        self.complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.complaints.append(context))
        self._before = self._open()

    def _open(self) -> tuple[int, int, int]:
        gc.collect()
        connections = sum(isinstance(one, asyncio.BaseProtocol) for one in gc.get_objects())
        return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), connections

    def gone(self) -> bool:
        """Whether no more is there than at the beginning."""
        return all(now <= before for now, before in zip(self._open(), self._before, strict=True))


async def leave(port: int, said: bytes, *, reset: bool) -> None:
    """Connects, says this, and is gone without waiting for anything."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, said)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def hello() -> bytes:
    """The first words of a TLS client."""
    context, incoming, outgoing = ssl.create_default_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
    return outgoing.read()


async def leaves_nothing(port: int, said: bytes) -> None:
    # For the first one a loop may open files that it keeps.
    await leave(port, said, reset=False)
    traces = Traces()
    for reset in (False, True):
        await asyncio.gather(*(leave(port, said, reset=reset) for _ in range(5)))
    await until_async(traces.gone, "end of all connections", pause=0.2)
    assert traces.complaints == []


@pytest.fixture(scope="module", autouse=True)
def _only_what_is_new() -> Iterator[None]:
    """What there was before these tests is not looked through again and again by the garbage collector."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _no_warnings() -> Any:
    """What is open when its last reference goes is told of by a warning, which may come in another test."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(one.message) for one in told] == []


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("place", PLACES)
async def test_a_client_that_leaves_leaves_nothing_behind(tmp_path: Path, place: str, words: str) -> None:
    async with PLACES[place](tmp_path) as port:
        await leaves_nothing(port, WORDS[words])


@pytest.mark.parametrize("words", ["nothing", "half a request line", "half a header", "half a body"])
@pytest.mark.parametrize("place", OF_TESTS)
async def test_a_client_that_leaves_a_server_of_the_tests_leaves_nothing_behind(
    tmp_path: Path, place: str, words: str
) -> None:
    async with OF_TESTS[place](tmp_path) as port:
        await leaves_nothing(port, WORDS[words])


@pytest.mark.parametrize("part", [0, 0.5, 1])
@pytest.mark.parametrize("place", PLACES)
async def test_a_client_that_leaves_in_a_tls_handshake_leaves_nothing_behind(
    tmp_path: Path, place: str, part: float
) -> None:
    said = hello()
    async with PLACES[place](tmp_path, **certificate(tmp_path)) as port:
        await leaves_nothing(port, said[: int(len(said) * part)])

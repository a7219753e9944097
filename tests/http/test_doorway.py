"""What anybody may do who can reach a port: never so much that others are not served."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.certificate import certificate
from tests.data.server.memory import MemoryCluster
from tests.data.server.running import running as running_data
from tests.http.places import PLACES, coordinator, data
from tocsin.http import doorway, listening
from tocsin.settings import DataSettings, Settings

GET: Final = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BLOCK: Final = b"x" * (1 << 16)
SECONDS: Final = 30.0


class Stranger:
    """A connection of somebody who shows no token."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """All that still comes until the server ends the connection."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def taken(self, block: bytes, most: int) -> int:
        """How many bytes of such blocks the server takes before it ends the connection, ``most`` if it takes all."""
        for sent in range(0, most, len(block)):
            try:
                await self.say(block)
            except ConnectionError:
                return sent
        return most

    async def ended(self, drop: bytes) -> None:
        """Says so much again and again, slowly, until the server has had enough."""
        over = asyncio.create_task(self.rest())
        while not over.done():
            with suppress(ConnectionError):
                await self.say(drop)
            await asyncio.wait([over], timeout=0.05)
        await over


@asynccontextmanager
async def stranger(port: int) -> AsyncIterator[Stranger]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Stranger(reader, writer)
    finally:
        writer.transport.abort()


async def is_served(port: int, verify: ssl.SSLContext | None = None) -> bool:
    """Whether an honest caller is."""
    scheme = "https" if verify else "http"
    async with httpx.AsyncClient(verify=verify or False, trust_env=False, timeout=SECONDS) as client:
        return (await client.get(f"{scheme}://127.0.0.1:{port}/health")).is_success


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that wait for strangers for a short time only."""
    monkeypatch.setattr(doorway, "HEAD_SECONDS", 0.3)


def hasty(place: str) -> dict[str, Any]:
    return {"login_seconds": 0.3} if place == "broker" else {}


@pytest.mark.parametrize("lead", [GET, GET + b"X: ", b"GET /", GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: "])
@pytest.mark.parametrize("place", PLACES)
async def test_forty_megabytes_of_head_are_not_taken(tmp_path: Path, place: str, lead: bytes) -> None:
    async with PLACES[place](tmp_path) as port, stranger(port) as one:
        await one.say(lead)
        assert await one.taken(b"h: v\r\n" * 10_000 if lead is GET else BLOCK, 40 << 20) < 20 << 20
        assert await is_served(port)


@pytest.mark.parametrize("place", PLACES)
async def test_a_head_a_little_too_large_is_refused_with_a_reason(tmp_path: Path, place: str) -> None:
    async with PLACES[place](tmp_path) as port, stranger(port) as one:
        await one.say(GET + b"X: " + BLOCK + b"\r\n\r\n")
        assert (await one.rest()).startswith(b"HTTP/1.1 400")


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("said", [b"", b"GET", GET, GET + b"\r\n" + GET])
@pytest.mark.parametrize("place", PLACES)
async def test_half_a_request_is_not_waited_for(tmp_path: Path, place: str, said: bytes) -> None:
    async with PLACES[place](tmp_path, **hasty(place)) as port, stranger(port) as one:
        await one.say(said)
        await one.rest()


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("place", PLACES)
async def test_a_head_that_comes_in_drops_is_not_waited_for(tmp_path: Path, place: str) -> None:
    async with PLACES[place](tmp_path, **hasty(place)) as port, stranger(port) as one:
        await one.say(GET)
        await one.ended(b"X: y\r\n")


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("length", [b"Content-Length: 50000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
async def test_a_body_that_comes_in_drops_is_not_waited_for(tmp_path: Path, length: bytes) -> None:
    async with coordinator(tmp_path, registration="open") as port, stranger(port) as one:
        await one.say(b"POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\n" + length)
        await one.ended(b"1\r\n \r\n" if length.startswith(b"T") else b" ")


@pytest.mark.usefixtures("_hasty")
async def test_a_body_that_nobody_wants_is_not_waited_for(tmp_path: Path) -> None:
    async with data(tmp_path) as port, stranger(port) as one:
        await one.say(b"POST /feeds/reports HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50000\r\n\r\n")
        await one.ended(b" ")


@pytest.mark.parametrize("place", PLACES)
async def test_requests_sent_far_ahead_are_not_kept(tmp_path: Path, place: str) -> None:
    async with PLACES[place](tmp_path) as port, stranger(port) as one:
        await one.say((GET + b"\r\n") * 1000)
        assert (await one.rest()).count(b"HTTP/1.1 200") <= 2 * doorway.AHEAD
        assert await is_served(port)


@pytest.mark.parametrize("said", [b"", b"GET /health"])
@pytest.mark.parametrize("place", PLACES)
async def test_honest_callers_are_served_beside_any_number_of_silent_ones(
    tmp_path: Path, place: str, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway, "LEAST", 100)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(PLACES[place](tmp_path, connections=100))
        silent = [await stack.enter_async_context(stranger(port)) for _ in range(300)]
        for one in silent:
            await one.say(said)
        assert await is_served(port)
        for one in silent[:150]:
            await one.rest()


@pytest.mark.parametrize("place", PLACES)
async def test_honest_callers_are_served_beside_any_number_of_tls_handshakes(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "HANDSHAKES", 10)
    files = certificate(tmp_path)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(PLACES[place](tmp_path, **files))
        silent = [await stack.enter_async_context(stranger(port)) for _ in range(50)]
        assert await is_served(port, ssl.create_default_context(cafile=files["tls_certificate"]))
        for one in silent[:30]:
            await one.rest()


@pytest.mark.usefixtures("_hasty")
@pytest.mark.slow
async def test_a_large_body_of_somebody_known_is_taken_in_any_pieces(tmp_path: Path) -> None:
    cluster = MemoryCluster()
    await cluster.apply("CREATE DATASET D (x STRING); CREATE FEED f INTO D SLICED BY x;", None)
    records = [b'{"x": "%b"}\n' % (b"y" * 5000)] * 1000

    async def pieces(size: int) -> AsyncIterator[bytes]:
        body = b"".join(records)
        for start in range(0, len(body), size):
            yield body[start : start + size]

    async with running_data(cluster, Settings(data=DataSettings(directory=tmp_path, port=0))) as (url, _):
        headers = {"Authorization": "Bearer publisher", "Content-Type": "application/x-ndjson"}
        async with httpx.AsyncClient(trust_env=False, verify=False, headers=headers, timeout=SECONDS) as client:
            for size in (100, 10_000, 10_000_000):
                answer = await client.post(f"{url}/feeds/f", content=pieces(size))
                assert answer.json()["accepted"] == len(records), answer.text


@asynccontextmanager
async def deaf(port: int) -> AsyncIterator[socket.socket]:
    """A connection of somebody who takes nothing in but what its kernel does."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.setblocking(False)
        await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
        yield one


async def asks_until_ended(one: socket.socket) -> int:
    """Asks again and again and reads no answer; how many times until the server had enough."""
    loop, ask, asked = asyncio.get_running_loop(), GET + b"\r\n", 0
    with suppress(ConnectionError):
        async with asyncio.timeout(SECONDS):
            while True:
                await loop.sock_sendall(one, ask)
                asked += 1
    return asked


@pytest.mark.parametrize(
    "place", [pytest.param(one, marks=() if one == "data" else pytest.mark.slow) for one in PLACES]
)
async def test_who_asks_and_reads_no_answer_is_ended_and_others_are_served_meanwhile(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway, "UNREAD_SECONDS", 0.3)
    async with PLACES[place](tmp_path) as port, AsyncExitStack() as stack:
        many = [await stack.enter_async_context(deaf(port)) for _ in range(5)]
        asking = [asyncio.create_task(asks_until_ended(one)) for one in many]
        assert await is_served(port)
        assert all(await asyncio.gather(*asking))
        assert await is_served(port)

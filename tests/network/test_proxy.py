"""The proxy: passes everything on as it is, until the test wants otherwise."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.network.proxy import Conditions, Hold, Proxy, proxy
from tocsin.testing.serving import serving

HEAD = b"GET / HTTP/1.1\r\n\r\n"


@dataclass
class Echo:
    """A server that says everything again, and what it heard."""

    port: int = 0
    heard: bytes = b""

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        while chunk := await reader.read(1 << 16):
            self.heard += chunk
            writer.write(chunk)
            await writer.drain()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    made = Echo()
    async with serving(made.serve) as made.port:
        yield made


@pytest.fixture
async def between(echo: Echo) -> AsyncIterator[Proxy]:
    async with proxy(echo.port) as made:
        yield made


class Client:
    """A connection through the proxy."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, between: Proxy) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", between.port))

    async def says(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    async def hears(self, size: int) -> bytes:
        return await asyncio.wait_for(self._reader.readexactly(size), 10)

    async def hears_a_reset(self) -> bool:
        try:
            await asyncio.wait_for(self._reader.read(), 10)
        except ConnectionResetError:
            return True
        else:
            return False
        finally:
            self.leave()

    def silent(self) -> asyncio.Task[bytes]:
        """What would end if anything came."""
        return asyncio.create_task(self._reader.read(1))

    def leave(self) -> None:
        self._writer.transport.abort()


async def test_everything_passes_both_ways_unchanged(between: Proxy) -> None:
    client, content = await Client.to(between), bytes(range(256)) * 2000
    await asyncio.gather(client.says(content), received := asyncio.create_task(client.hears(len(content))))
    assert received.result() == content
    client.leave()


async def test_a_slow_network_is_still_a_right_one(between: Proxy) -> None:
    between.set(Conditions(delay=0.01, rate=1_000_000))
    client = await Client.to(between)
    await client.says(b"slow" * 1000)
    assert await client.hears(4000) == b"slow" * 1000
    client.leave()


async def test_a_reset_is_seen_and_a_new_connection_passes(between: Proxy) -> None:
    client = await Client.to(between)
    await client.says(b"x")
    await client.hears(1)
    assert between.reset() == 1
    assert await client.hears_a_reset()
    again = await Client.to(between)
    await again.says(b"y")
    assert await again.hears(1) == b"y"
    again.leave()


async def test_a_connection_is_cut_after_so_many_bytes(between: Proxy, echo: Echo) -> None:
    between.set(Conditions(limit=5))
    client = await Client.to(between)
    await client.says(b"1234567890")
    assert await client.hears_a_reset()
    assert echo.heard == b"12345"


async def test_half_open_connections_say_nothing_and_close_nothing_until_the_network_is_back(between: Proxy) -> None:
    client = await Client.to(between)
    await client.says(b"x")
    await client.hears(1)
    between.set(Conditions(frozen=True))
    await client.says(b"y")
    nothing = client.silent()
    other = await Client.to(between)
    await other.says(b"z")
    between.set(Conditions())
    assert await nothing == b"y"
    assert await other.hears(1) == b"z"
    client.leave()
    other.leave()


async def test_a_lost_connection_never_comes_back_and_others_pass(between: Proxy) -> None:
    lost = await Client.to(between)
    await lost.says(b"x")
    await lost.hears(1)
    assert between.lose() == 1
    await lost.says(b"y")
    nothing = lost.silent()
    other = await Client.to(between)
    await other.says(b"z")
    assert await other.hears(1) == b"z"
    assert not nothing.done()
    lost.leave()
    other.leave()
    await asyncio.wait([nothing])
    nothing.exception()


async def test_connections_are_refused(between: Proxy) -> None:
    between.set(Conditions(refusing=True))
    assert await (await Client.to(between)).hears_a_reset()


@pytest.mark.parametrize(
    ("hold", "said", "heard"),
    [(Hold.ACCEPTED, b"", b""), (Hold.OPENED, HEAD, HEAD), (Hold.SAID, HEAD + b"login", HEAD)],
)
async def test_a_connection_is_held_where_it_should_be(
    between: Proxy, echo: Echo, hold: Hold, said: bytes, heard: bytes
) -> None:
    between.set(Conditions(hold=hold))
    client = await Client.to(between)
    await client.says(HEAD)
    assert await client.hears(len(heard)) == heard
    await client.says(b"login")
    await asyncio.wait_for(between.held.wait(), 10)
    assert echo.heard == said
    client.leave()

"""Frames that say nothing: few are taken as they are meant, many cost only who sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from tests.overlay.server.running import Talk, head, talk
from tests.waiting import SECONDS, until_async
from tocsin.http import websocket
from tocsin.overlay.dialogue import Introduce, Known, Publish, Stored

HANDSHAKE: Final = (
    b"GET /client HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
FRAMES: Final = {
    "pings": Frame(Opcode.PING, b"x" * 125),
    "pongs": Frame(Opcode.PONG, b""),
    "empty parts": Frame(Opcode.CONT, b"", fin=False),
}


def bytes_of(frame: Frame) -> bytes:
    return frame.serialize(mask=True)


@asynccontextmanager
async def upgraded(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A bare WebSocket."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(HANDSHAKE)
        async with asyncio.timeout(SECONDS):
            assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        yield reader, writer
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("what", FRAMES)
async def test_who_sends_frames_without_end_is_closed_though_it_reads_nothing(tmp_path: Path, what: str) -> None:
    async with head(tmp_path) as root, upgraded(root) as (_, writer):
        if what == "empty parts":
            writer.write(bytes_of(Frame(Opcode.TEXT, b"", fin=False)))
        with pytest.raises(ConnectionError):
            await _write_for_ever(writer, bytes_of(FRAMES[what]) * 1000)
        async with talk(root) as other:
            await other.say(Introduce("p"))
            assert isinstance(await other.hear(), Known)


async def test_it_is_told_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "BURST", 10.0)
    async with head(tmp_path) as root, talk(root) as me:
        with pytest.raises(ConnectionClosed):
            await _ping_for_ever(me)
        assert await me.closed() == (1008, "too many pings or parts of messages in too short a time")


async def test_pings_are_answered(tmp_path: Path) -> None:
    async with head(tmp_path) as root, talk(root) as me, asyncio.timeout(SECONDS):
        for answer in [await me.socket.ping() for _ in range(200)]:
            await answer


async def test_a_message_in_large_parts_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "BURST", 2.0)
    content = {f"a{number}": "x" * 1000 for number in range(60)}
    text = msgspec.json.encode(Publish(1, content)).decode()  # type: ignore[arg-type]
    async with head(tmp_path) as root, talk(root) as me:
        await me.say(Introduce("p"))
        assert isinstance(await me.hear(), Known)
        await me.socket.send(text[at : at + 300] for at in range(0, len(text), 300))
        assert await me.hear() == Stored(1)


async def test_many_messages_that_come_at_once_are_taken_in_order(tmp_path: Path) -> None:
    messages = [Introduce("p"), *(Publish(number, {"a": float(number)}) for number in range(1, 5001))]
    sent = b"".join(bytes_of(Frame(Opcode.TEXT, msgspec.json.encode(each))) for each in messages)
    async with head(tmp_path) as root:
        async with upgraded(root) as (reader, writer), asyncio.timeout(SECONDS):
            writer.write(sent + bytes_of(Frame(Opcode.CLOSE, b"\x03\xe8")))
            while await reader.read(1 << 16):
                pass

        async def stored() -> bool:
            async with talk(root) as me:
                await me.say(Introduce("p"))
                known = await me.hear()
                return isinstance(known, Known) and known.sequence == 5000

        assert await until_async(stored)


async def _write_for_ever(writer: asyncio.StreamWriter, data: bytes) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            writer.write(data)
            await writer.drain()


async def _ping_for_ever(me: Talk) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            await (await me.socket.ping())

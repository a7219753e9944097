"""Whatever comes over a socket, it is answered as docs/protocol.md says, and the broker serves on."""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.broker.server.world import SECONDS, World
from tests.waiting import until_async
from tocsin.coordinator.tokens import Claims, SigningKey


class Raw:
    """A TCP connection without manners."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def upgrade(self) -> None:
        """Becomes a WebSocket."""
        key = base64.b64encode(os.urandom(16)).decode()
        self.writer.write(
            f"GET /subscriber HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        assert (await self.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")

    async def everything(self) -> bytes:
        """All that comes until the broker ends the connection."""
        async with asyncio.timeout(SECONDS):
            return await self.reader.read()

    async def closing(self) -> tuple[list[str], int]:
        """The codes of the errors that come, and that of the close."""
        data = b""
        while True:
            async with asyncio.timeout(SECONDS):
                more = await self.reader.read(1 << 16)
            assert more, f"ended without a close, after {data!r}"
            data += more
            found = frames(data)
            if found[-1][0] == CLOSE:
                errors = [msgspec.json.decode(payload)["code"] for opcode, payload in found if opcode == 1]
                return errors, struct.unpack("!H", found[-1][1][:2])[0]


def frames(data: bytes) -> list[tuple[int, bytes]]:
    """Frames as a server sends them, by opcode."""
    found: list[tuple[int, bytes]] = []
    while data:
        size, start = data[1], 2
        if size == 126:
            size, start = struct.unpack("!H", data[2:4])[0], 4
        elif size == 127:
            size, start = struct.unpack("!Q", data[2:10])[0], 10
        found.append((data[0] & 0x0F, data[start : start + size]))
        data = data[start + size :]
    return found


def frame(head: int, payload: bytes = b"", *, mask: bool = True, size: int | None = None) -> bytes:
    """A frame as a client sends it, or should not; ``size`` is what it says of its length."""
    size, bit = len(payload) if size is None else size, 0x80 if mask else 0
    if size < 126:
        start = struct.pack("!BB", head, bit | size)
    elif size < 1 << 16:
        start = struct.pack("!BBH", head, bit | 126, size)
    else:
        start = struct.pack("!BBQ", head, bit | 127, size)
    return start + (b"\0\0\0\0" if mask else b"") + payload


@asynccontextmanager
async def raw(world: World) -> AsyncIterator[Raw]:
    parts = urlsplit(world.broker)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.close()


TEXT, CONT, BINARY, PING, CLOSE = 0x81, 0x80, 0x82, 0x89, 8
LIMIT = 256 * 1024


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)), b"400"),
        (b"hello, is it me you are looking for?\r\n\r\n", b"400"),
        (b"GET /subscriber HTTP/1.1\r\nX: " + b"x" * 70_000, b"400"),
        (b"GET /subscriber HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"400"),
        (b"POST /subscriber HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"405"),
        (b"GET /elsewhere HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"404"),
    ],
    ids=["tls", "text", "endless header", "no key", "post", "another path"],
)
async def test_what_is_no_handshake_is_refused(world: World, request_: bytes, status: bytes) -> None:
    async with raw(world) as peer:
        peer.writer.write(request_)
        assert (await peer.everything()).startswith(b"HTTP/1.1 " + status)
    await world.still_serves()


async def test_half_a_handshake_and_silence_are_ended(tmp_path: Path) -> None:
    async with World(tmp_path, {"login_seconds": 0.1}) as world, raw(world) as half, raw(world) as silent:
        half.writer.write(b"GET /subscriber HTTP/1.1\r\nHost: localhost\r\nUpgr")
        assert await half.everything() == b""
        assert await silent.everything() == b""


@pytest.mark.parametrize(
    ("sent", "errors", "code"),
    [
        (frame(TEXT, b"{}", mask=False), [], 1002),
        (frame(0xF1, b"{}"), [], 1002),
        (frame(0x83, b"{}"), [], 1002),
        (frame(CONT, b"{}"), [], 1002),
        (frame(0x01, b"{") + frame(TEXT, b"}"), [], 1002),
        (frame(PING, b"x" * 126), [], 1002),
        (frame(BINARY, b"{}"), ["invalid"], 4400),
        (frame(TEXT, b'{"type": "login", "token": "\xff"}'), ["invalid"], 4400),
        (frame(TEXT, b"\xed\xa0\x80"), ["invalid"], 4400),
        (frame(TEXT, b""), ["invalid"], 4400),
        (frame(TEXT, b"[" * 5000), ["invalid"], 4400),
        (frame(TEXT, b'{"type": "subscribe", "id": 1, "channel": "Of", "parameters": {}}'), ["invalid"], 4400),
        (frame(TEXT, b'{"type": "login", "token": "x", "version": 9}'), ["version"], 4400),
        (frame(TEXT, size=LIMIT + 1), ["too-large"], 1009),
        (frame(TEXT, size=(1 << 63) - 1), ["too-large"], 1009),
        (frame(0x01, b"x" * LIMIT) + frame(CONT, b"x"), ["too-large"], 1009),
        (frame(TEXT, b"x" * (LIMIT + 1)), ["too-large"], 1009),
        (frame(TEXT, b"x" * LIMIT), ["invalid"], 4400),
        (frame(0x88, b"\x03"), [], 1002),
    ],
)
async def test_a_frame_that_makes_no_sense_closes_its_connection(
    world: World, sent: bytes, errors: list[str], code: int
) -> None:
    async with raw(world) as peer:
        await peer.upgrade()
        peer.writer.write(sent)
        assert await peer.closing() == (errors, code)
    await world.still_serves()


async def test_messages_without_sense_after_the_login_are_answered_if_they_have_an_id(world: World) -> None:
    async with world.member("ann") as ann:
        answer = await ann.ask(type="subscribe", id=5, channel=7)
        assert (answer["code"], answer["id"]) == ("invalid", 5)
        await ann.socket.send("{}")
        answers, code = await ann.end()
        assert ([answer["code"] for answer in answers], code) == (["invalid"], 4400)


async def test_a_flood_of_messages_is_closed(tmp_path: Path) -> None:
    async with World(tmp_path, {"message_burst": 10}) as world:
        async with world.member("ann") as ann:
            for _ in range(12):
                await ann.socket.send('{"type": "ack", "cursors": {}}')
            answers, code = await ann.end()
            assert ([answer["code"] for answer in answers], code) == (["flood"], 4429)
        await world.still_serves()


@pytest.mark.parametrize("sent", [frame(PING), frame(0x8A), frame(0x00)], ids=["ping", "pong", "empty part"])
async def test_a_flood_of_frames_that_are_no_messages_is_closed(tmp_path: Path, sent: bytes) -> None:
    async with World(tmp_path, {"message_burst": 10}) as world, raw(world) as peer:
        await peer.upgrade()
        peer.writer.write((frame(0x01) if sent[0] == 0 else b"") + sent * 30_000)
        assert await peer.closing() == (["flood"], 4429)
        await world.still_serves()


def tokens(world: World) -> list[str]:
    """What is not a subscriber's token."""
    claims = Claims("ann", "subscriber", 1e12)
    return [
        "",
        "guess",
        "a.b",
        "\u2603.\u2603",
        SigningKey.new().sign(claims),
        world.store.keyring().signing.sign(msgspec.structs.replace(claims, expires=1.0)),
        world.store.keyring().signing.sign(msgspec.structs.replace(claims, role="operator")),
        world.store.keyring().signing.sign(msgspec.structs.replace(claims, role="broker")),
    ]


async def test_a_token_that_is_no_subscribers_is_refused(world: World) -> None:
    await world.token("ann")
    for token in tokens(world):
        async with world.client() as client:
            await client.send(type="login", token=token)
            answers, code = await client.end()
            assert ([answer["code"] for answer in answers], code) == (["unauthorized"], 4401)
    await world.still_serves()


async def test_a_subscriber_of_no_broker_here_is_sent_to_the_coordinator(world: World) -> None:
    async with world.client() as client:
        await client.send(type="login", token=world.store.keyring().signing.sign(Claims("eve", "subscriber", 1e12)))
        answers, code = await client.end()
        assert ([answer["code"] for answer in answers], code) == (["elsewhere"], 4404)


async def test_another_users_token_gives_nothing_but_that_user(world: World) -> None:
    async with world.member("ann") as ann, world.member("bob") as bob:
        be = await world.subscription(ann, "flood")
        answer = await bob.ask(type="unsubscribe", id=2, subscription=be)
        assert (answer["code"], answer["id"]) == ("not-found", 2)
        world.execute(1, be)
        assert (await ann.receive())["type"] == "notes"


async def test_no_login_in_time_is_closed(tmp_path: Path) -> None:
    async with World(tmp_path, {"login_seconds": 0.1}) as world, world.client() as client:
        answers, code = await client.end()
        assert ([answer["code"] for answer in answers], code) == (["late"], 4408)


async def test_a_peer_that_is_silent_though_it_was_asked_is_ended(tmp_path: Path) -> None:
    async with World(tmp_path, {"ping_seconds": 0.5, "login_seconds": 60.0}) as world:
        async with world.member("ann") as ann, raw(world) as peer:
            await peer.upgrade()
            assert frames(await peer.everything()) == [(9, b"")]
            await world.subscription(ann, "flood")
        assert (await world.status())["closed"]["1006"] == 1


async def test_a_peer_that_never_answers_a_close_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.broker.server.connections.CLOSE_SECONDS", 0.1)
    async with raw(world) as peer:
        await peer.upgrade()
        peer.writer.write(frame(BINARY))
        assert frames(await peer.everything())[-1][0] == CLOSE


async def test_who_leaves_without_a_word_is_forgotten(world: World) -> None:
    async with raw(world) as peer:
        await peer.upgrade()
        peer.writer.write(frame(TEXT, b'{"type": "lo', size=100))
    await world.still_serves()

    async def is_forgotten() -> bool:
        status: dict[str, Any] = await world.status()
        return bool(status["connections"] == 0 and status["closed"].get("1006") == 1)

    await until_async(is_forgotten, "end of the session")

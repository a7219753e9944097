"""The short way of text messages, beside the library's: whatever the pieces in which frames come, all is as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Event, State

from tests.waiting import until_async
from tocsin.client import websocket
from tocsin.client.websocket import ClientWebSocket, encode_frame, measure
from tocsin.testing.serving import serving

SIZES = [0, 1, 125, 126, 300, 65_535, 65_536, 200_000]


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[ClientWebSocket]:
    async with connect(f"ws://127.0.0.1:{port}", compression=None, create_connection=ClientWebSocket) as socket:
        assert isinstance(socket, ClientWebSocket)
        yield socket


@asynccontextmanager
async def served(behave: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[int]:
    async with serve(behave, "127.0.0.1", 0, compression=None, max_size=None) as server:
        yield next(iter(server.sockets)).getsockname()[1]


@pytest.mark.parametrize("size", SIZES)
def test_a_frame_is_as_the_library_writes_it(size: int) -> None:
    text = Random(size).randbytes(size)
    frame = encode_frame(text, b"\x01\x02\x03\x04")
    assert measure(frame, 0) == (len(frame) - size, size)
    assert len(frame) == len(Frame(Opcode.TEXT, text).serialize(mask=True))


async def test_what_is_written_arrives_whatever_its_size() -> None:
    came: list[bytes] = []

    async def hear(socket: ServerConnection) -> None:
        async for message in socket:
            assert isinstance(message, str), "it is text"
            came.append(message.encode())

    async with served(hear) as port, connected(port) as socket:
        for size in SIZES:
            socket.push(b"x" * size)
        await until_async(lambda: len(came) == len(SIZES), "messages")
    assert [len(message) for message in came] == SIZES


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1000, 1 << 20])
async def test_messages_pings_and_fragments_are_told_apart_in_whatever_pieces_they_come(piece: int) -> None:
    frames = [
        Frame(Opcode.TEXT, b"one"),
        Frame(Opcode.PING, b"?"),
        Frame(Opcode.TEXT, b"x" * 300),
        Frame(Opcode.TEXT, b"in ", fin=False),
        Frame(Opcode.PING, b"between"),
        Frame(Opcode.CONT, b"parts"),
        Frame(Opcode.TEXT, b""),
        Frame(Opcode.TEXT, b"last"),
    ]
    sent = b"".join(frame.serialize(mask=False) for frame in frames)

    async def say(socket: ServerConnection) -> None:
        await socket.recv()
        for start in range(0, len(sent), piece):
            socket.transport.write(sent[start : start + piece])
            if piece < 1000:
                await asyncio.sleep(0)
        await socket.wait_closed()

    came: list[bytes] = []
    async with served(say) as port, connected(port) as socket:
        socket.deliver(came.append)
        socket.push(b"go on")
        await until_async(lambda: b"last" in came, "messages")
    assert came == [b"one", b"x" * 300, b"in parts", b"", b"last"]


async def test_what_comes_with_the_handshake_is_kept_until_somebody_takes_it() -> None:
    async def say(socket: ServerConnection) -> None:
        await socket.send("at once")
        await socket.send("and again")
        await socket.wait_closed()

    came: list[bytes] = []
    async with served(say) as port, connected(port) as socket:
        await asyncio.sleep(0)
        socket.deliver(came.append)
        await until_async(lambda: len(came) == 2, "messages")
    assert came == [b"at once", b"and again"]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x81\x81\x00\x00\x00\x00x", CloseCode.PROTOCOL_ERROR),  # masked, by a server
        (b"\xc1\x01x", CloseCode.PROTOCOL_ERROR),  # a reserved bit
        (b"\x80\x01x", CloseCode.PROTOCOL_ERROR),  # the end of nothing
        (b"\x81\x7f" + (1 << 40).to_bytes(8, "big"), CloseCode.MESSAGE_TOO_BIG),
    ],
    ids=["masked", "reserved", "continued", "huge"],
)
async def test_what_is_against_the_protocol_ends_the_connection_with_its_reason(frame: bytes, code: int) -> None:
    closed: list[int | None] = []

    async def say(socket: ServerConnection) -> None:
        await socket.recv()
        socket.transport.write(frame + Frame(Opcode.TEXT, b"more").serialize(mask=False))
        await socket.wait_closed()
        closed.append(socket.protocol.close_rcvd.code if socket.protocol.close_rcvd else None)

    came: list[bytes] = []
    async with served(say) as port:
        async with connect(
            f"ws://127.0.0.1:{port}",
            compression=None,
            max_size=websocket.MESSAGE_BYTES,
            create_connection=ClientWebSocket,
        ) as socket:
            assert isinstance(socket, ClientWebSocket)
            socket.deliver(came.append)
            socket.push(b"go on")
            await socket.wait_closed()
        await until_async(lambda: closed, "close")
    assert (came, closed) == ([], [code])


async def test_a_server_that_is_gone_in_the_middle_of_a_message_delivers_nothing_of_it() -> None:
    async def say(socket: ServerConnection) -> None:
        await socket.recv()
        socket.transport.write(Frame(Opcode.TEXT, b"whole").serialize(mask=False) + b"\x81\x05ha")
        await until_async(lambda: came, "first message")
        socket.transport.abort()

    came: list[bytes] = []
    async with served(say) as port, connected(port) as socket:
        socket.deliver(came.append)
        socket.push(b"go on")
        await socket.wait_closed()
    assert (came, socket.close_code) == ([b"whole"], 1006)


async def test_nothing_is_written_once_it_is_closing() -> None:
    async def gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 no\r\nContent-Length: 0\r\n\r\n")

    async with serving(gone) as port:
        with pytest.raises(Exception, match="400"):
            async with connected(port):
                pass

    async def hear(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with served(hear) as port, connected(port) as socket:
        await socket.close()
        socket.push(b"too late")


async def test_a_connection_that_falls_silent_is_pinged_and_goes_on_when_it_answers() -> None:
    pings: list[bytes] = []

    class Counting(ServerConnection):
        def process_event(self, event: Event) -> None:
            super().process_event(event)
            if isinstance(event, Frame) and event.opcode is Opcode.PING:
                pings.append(bytes(event.data))

    async def hear(socket: ServerConnection) -> None:
        await socket.wait_closed()

    serving = serve(hear, "127.0.0.1", 0, compression=None, create_connection=Counting)
    async with serving as server, connected(next(iter(server.sockets)).getsockname()[1]) as socket:
        socket.watch(0.02, 30.0)
        await until_async(lambda: pings, "ping")
        assert socket.state is State.OPEN


async def test_a_connection_that_does_not_answer_a_ping_is_cut() -> None:
    cut = asyncio.Event()

    async def freeze(socket: ServerConnection) -> None:
        socket.transport.pause_reading()
        await cut.wait()
        socket.transport.resume_reading()
        await socket.wait_closed()

    async with served(freeze) as port, connected(port) as socket:
        socket.watch(0.02, 0.02)
        await socket.wait_closed()
        cut.set()
    assert socket.close_code == 1006

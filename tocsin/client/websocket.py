"""A WebSocket that costs little per message, for programs that play thousands of people.

Opening, closing, proxies and whatever is against the protocol are the ``websockets`` library's. Text messages in one
frame, which is nearly all there is, take a short way: what comes is handed over as it is read, without a task that is
woken for it, and what goes out is written at once. A connection on which something comes is not pinged.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from struct import pack, unpack_from
from typing import Final

from websockets.asyncio.client import ClientConnection
from websockets.client import ClientProtocol
from websockets.frames import DATA_OPCODES, Frame
from websockets.protocol import OPEN, Event

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform for which there is no compiled part
    from websockets.utils import apply_mask

MESSAGE_BYTES: Final = 64 << 20
"""One execution's notes come in one message, so that the bound is only against a broker gone mad."""
# A whole text message, in the first byte of its frame.
_TEXT: Final = 0x81
_MASKED: Final = 0x80
# Masks must not be foreseen; to ask the system for each would cost more than all the rest of a frame.
_MASKS: Final = 4096


class ClientWebSocket(ClientConnection):
    """A connection, made by ``websockets.connect``. Messages wait until somebody says where they go.

    What can go wrong: frames against the protocol, or too large (the library ends the connection, and says why).
    """

    def __init__(self, protocol: ClientProtocol, **options: object) -> None:
        super().__init__(protocol, **options)  # type: ignore[arg-type]
        self._receive: Callable[[bytes], None] = self._keep
        self._kept: list[bytes] = []
        self._parts: list[bytes] = []
        self._whole = False
        self._rest = bytearray()
        self._needed = 0
        self._heard = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    def deliver(self, receive: Callable[[bytes], None]) -> None:
        """Where messages go from now on, beginning with those that have come."""
        kept, self._kept, self._receive = self._kept, [], receive
        for message in kept:
            receive(message)

    def watch(self, ping_seconds: float, pong_seconds: float) -> None:
        """Pings when nothing has come for so long, and cuts the connection when that is not answered in time."""
        self._heard = self.loop.time()

        def look() -> None:
            now = self.loop.time()
            if now < self._heard + ping_seconds:
                self._alarm = self.loop.call_at(self._heard + ping_seconds, look)
            else:
                self._ping()
                self._alarm = self.loop.call_later(pong_seconds, judge, now)

        def judge(pinged: float) -> None:
            if self._heard >= pinged:
                look()
            else:
                self.transport.abort()

        look()

    def push(self, text: bytes) -> None:
        """Writes a text message without waiting, unless the connection is closing."""
        if self.protocol.state is OPEN:
            self.transport.write(encode_frame(text, _mask()))

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        if self._alarm:
            self._alarm.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes what has come."""
        self._heard = self.loop.time()
        if self.response is None:
            super().data_received(data)
            # What follows the handshake in the same piece has gone to the library, which then goes on with the rest.
            self._whole = data.endswith(b"\n")
        elif not self._whole or self.protocol.state is not OPEN:
            super().data_received(data)
        elif self._rest:
            self._rest += data
            if len(self._rest) >= self._needed:
                data, self._rest = bytes(self._rest), bytearray()
                self._take(data)
        else:
            self._take(data)

    def process_event(self, event: Event) -> None:
        """What the library has read."""
        if isinstance(event, Frame) and event.opcode in DATA_OPCODES:
            self._parts.append(bytes(event.data))
            if event.fin:
                message, self._parts = b"".join(self._parts), []
                self._receive(message)
        else:
            super().process_event(event)

    def _ping(self) -> None:
        if self.protocol.state is OPEN:
            self.protocol.send_ping(b"")
            self.send_data()

    def _take(self, data: bytes) -> None:
        """Takes frames apart, and keeps the beginning of one that is not all there."""
        start, end = 0, len(data)
        while start < end:
            head, size = measure(data, start)
            if size > MESSAGE_BYTES or self.protocol.state is not OPEN:
                self._whole = False
                super().data_received(data[start:])
                return
            after = start + head + size
            if not head or after > end:
                self._rest += data[start:]
                self._needed = head + size
                return
            if data[start] == _TEXT and not data[start + 1] & _MASKED and not self._parts:
                self._receive(data[start + head : after])
            else:
                super().data_received(data[start:after])
            start = after

    def _keep(self, message: bytes) -> None:
        self._kept.append(message)


def measure(data: bytes, start: int) -> tuple[int, int]:
    """The sizes of a frame's head and of what is in it; of a head that is not all there 0, and nothing."""
    there = len(data) - start
    if there < 2:
        return 0, 0
    size = data[start + 1] & 0x7F
    head = 2 if size < 126 else 4 if size == 126 else 10
    if data[start + 1] & _MASKED:
        head += 4
    if there < head:
        return 0, 0
    if size == 126:
        (size,) = unpack_from("!H", data, start + 2)
    elif size == 127:
        (size,) = unpack_from("!Q", data, start + 2)
    return head, size


def encode_frame(text: bytes, mask: bytes) -> bytes:
    """A text message in one frame, as clients send it."""
    size = len(text)
    if size < 126:
        head = pack("!BB", _TEXT, _MASKED | size)
    elif size < 1 << 16:
        head = pack("!BBH", _TEXT, _MASKED | 126, size)
    else:
        head = pack("!BBQ", _TEXT, _MASKED | 127, size)
    return head + mask + apply_mask(text, mask)


class _Masks:
    """Four bytes of the system's randomness at a time, fetched in larger pieces."""

    def __init__(self) -> None:
        self._pool, self._at = b"", 0

    def __call__(self) -> bytes:
        if self._at >= len(self._pool):
            self._pool, self._at = os.urandom(_MASKS), 0
        self._at += 4
        return self._pool[self._at - 4 : self._at]


_mask: Final = _Masks()

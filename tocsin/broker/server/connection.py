"""A subscriber's connection: frames in, frames out, nothing decided.

There are many thousands of these, so each is one small object: no task, no timer and no queue of its own. What comes in
is taken apart by websockets' protocol, which never holds more than one message of the size allowed. What goes out is
ready to be written.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import Final, Protocol, cast

import msgspec
from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from tocsin.broker.server import frames
from tocsin.model.subscriber import Code, Error

LOST: Final = 1006
# What is read at once, so that a flood is noticed before all of it was taken apart.
PIECE: Final = 1 << 14
_REASON_BYTES: Final = 123

_quiet = logging.getLogger("tocsin.broker.server.websockets")
_quiet.setLevel(logging.ERROR)


class Owner(Protocol):
    """What a connection tells, and whom."""

    message_bytes: int
    quota: int
    burst: int

    def entering(self, connection: SubscriberConnection, request: Request) -> Response | None:
        """Why a handshake is refused, if it is."""
        ...

    def entered(self, connection: SubscriberConnection) -> None:
        """It is open, and gets its number."""
        ...

    def received(self, connection: SubscriberConnection, data: bytes) -> None:
        """A whole message has come."""
        ...

    def owing(self, connection: SubscriberConnection) -> None:
        """What waits to be written must be looked at soon."""
        ...

    def leaving(self, connection: SubscriberConnection) -> None:
        """Nothing more comes from it, and it must end soon."""
        ...

    def left(self, connection: SubscriberConnection, code: int) -> None:
        """It has ended."""
        ...


class SubscriberConnection(asyncio.Protocol):
    """One connection, from its handshake on.

    ``owed`` bytes were written since it was last reported how many wait. ``heard`` and ``idle`` are for whoever looks
    after silent ones and for floods of frames that are no messages. While it is ``_resting``, nothing is read from it.
    What can go wrong: frames against the protocol
    (closed with 1002, after 1009 for size), messages that are no text (4400), a peer that is gone.
    """

    __slots__ = (
        "_fd",
        "_leaving",
        "_owner",
        "_parts",
        "_paused",
        "_protocol",
        "_resting",
        "_taken",
        "_transport",
        "_written",
        "heard",
        "id",
        "idle",
        "owed",
    )

    def __init__(self, owner: Owner) -> None:
        self.id = 0
        self.heard, self.idle, self.owed = True, 0, 0
        self._written = self._taken = 0
        self._owner, self._leaving, self._paused = owner, False, False
        self._parts: bytearray | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._protocol = ServerProtocol(max_size=owner.message_bytes, logger=_quiet)
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the transport over from the doorway."""
        self._transport = cast(asyncio.Transport, transport)
        self._fd = _plain(self._transport)
        high = min(1 << 16, self._owner.quota)
        self._transport.set_write_buffer_limits(high, high // 4)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The end, whoever wanted it."""
        self._leaving = True
        self._read_on()
        sent = self._protocol.close_sent
        self._owner.left(self, sent.code if sent else LOST)

    def data_received(self, data: bytes) -> None:
        """Takes what has come."""
        self.heard = True
        for start in range(0, len(data), PIECE):
            self._take(data[start : start + PIECE] if len(data) > PIECE else data)

    def pause_writing(self) -> None:
        """The peer does not keep up."""
        self._paused = True

    def resume_writing(self) -> None:
        """The peer has taken most of what waited."""
        self._paused = False
        self.heard = True
        self._owner.owing(self)

    def send(self, frame: bytes) -> None:
        """Writes a frame that is ready."""
        if self._leaving:
            return
        if self._fd is None or self._transport.get_write_buffer_size():
            self._transport.write(frame)
        else:
            self._write(self._fd, frame)
        self.owed += len(frame)
        self._written += len(frame)
        if self.owed > self._owner.quota:
            self._owner.owing(self)

    def alive(self) -> bool:
        """Whether there was a sign of life since this was last asked.

        One who reads slowly says nothing and cannot be asked, as a ping would wait behind all the rest; but its machine
        takes what was sent.
        """
        waiting = self._transport.get_write_buffer_size() + _unsent(self._transport.get_extra_info("socket"))
        taken = self._written - waiting
        alive = self.heard or taken > self._taken
        self.heard, self._taken = False, max(taken, self._taken)
        return alive

    def ping(self) -> None:
        """Asks for a sign of life."""
        if not self._paused and not self._leaving:
            self._transport.write(frames.PING)

    def close(self, code: int, reason: str) -> None:
        """Ends the connection, after what was sent."""
        if not self._leaving and self._protocol.state is OPEN:
            self._protocol.send_close(code, reason.encode()[:_REASON_BYTES].decode(errors="ignore"))
            self._transport.write(b"".join(self._protocol.data_to_send()))
            self._leave()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._transport.abort()

    def shutdown(self) -> None:
        """The server stops."""
        self.close(1001, "the broker is going away")

    def read_later(self, seconds: float) -> None:
        """Reads nothing for so long, from now on: what the peer says waits with it, and it notices."""
        self._read_on()
        if not self._transport.is_closing():
            self._transport.pause_reading()
            self._resting = asyncio.get_running_loop().call_later(seconds, self._read_on)

    def waiting(self) -> int:
        """Bytes that the peer has not taken; from here on ``owed`` counts what is added."""
        self.owed = waiting = self._transport.get_write_buffer_size()
        return waiting

    def _read_on(self) -> None:
        if self._resting:
            self._resting.cancel()
            self._resting = None
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def _write(self, fd: int, frame: bytes) -> None:
        """Straight to the socket, since nothing waits before it; whatever does not fit now is the transport's."""
        try:
            sent = os.write(fd, frame)
        except OSError:
            # Full, or broken: the transport finds out which.
            sent = 0
        if sent < len(frame):
            self._transport.write(frame[sent:])

    def _take(self, data: bytes) -> None:
        protocol = self._protocol
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Frame):
                self._frame(event)
            elif isinstance(event, Request):
                self._enter(event)
        if isinstance(protocol.parser_exc, PayloadTooBig) and not self._leaving:
            self._say("too-large", f"a message is too large: at most {self._owner.message_bytes} bytes are taken")
        self._flush()

    def _enter(self, request: Request) -> None:
        response = self._owner.entering(self, request) or self._protocol.accept(request)
        self._protocol.send_response(response)
        if response.status_code == 101:
            self._flush()
            self._owner.entered(self)

    def _frame(self, frame: Frame) -> None:
        if self._leaving:
            return
        if frame.opcode is Opcode.TEXT and frame.fin:
            self._message(bytes(frame.data))
        elif frame.opcode is Opcode.BINARY:
            self._refuse("messages are JSON text, not binary")
        elif frame.opcode is Opcode.TEXT:
            self._parts = bytearray(frame.data)
        elif frame.opcode is Opcode.CONT and self._parts is not None:
            self._parts += frame.data
            if frame.fin:
                whole, self._parts = bytes(self._parts), None
                self._message(whole)
        if not frame.fin or frame.opcode is not Opcode.TEXT:
            self._count()

    def _count(self) -> None:
        """Frames that are no messages cost as much as those that are, and nothing else counts them."""
        self.idle += 1
        if self.idle > self._owner.burst:
            self._say("flood", "too many frames in too short a time; send fewer")
            self.close(Code.FLOOD, "flood")

    def _message(self, data: bytes) -> None:
        # Checked here once and for all: what is passed on unread, such as records, shares its batch with others'.
        try:
            data.decode()
        except UnicodeDecodeError as error:
            self._refuse(f"the message is not UTF-8 text: {error.reason} at byte {error.start}")
            return
        self._owner.received(self, data)

    def _refuse(self, message: str) -> None:
        self._say("invalid", message)
        self.close(Code.UNREADABLE, "invalid")

    def _say(self, code: str, message: str) -> None:
        if not self._leaving:
            self.send(frames.text(msgspec.json.encode(Error(code, message))))

    def _flush(self) -> None:
        """Writes what the protocol has to say: answers to handshakes, pings and closes."""
        output = self._protocol.data_to_send()
        if not output:
            return
        ends = output[-1] == b""
        # Pings need not all be answered: not of those who do not read, and not after a close.
        if ends or not (self._paused or self._leaving):
            self._transport.write(b"".join(output))
        if ends:
            self._leave()
            self._finish()

    def _finish(self) -> None:
        """Ends on this side. What the peer is still sending is thrown away: to close with it unread would be a reset,
        and the peer might never see why."""
        if self._protocol.close_rcvd is None and self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def _leave(self) -> None:
        if not self._leaving:
            self._leaving = True
            self._read_on()
            self._owner.leaving(self)


def _unsent(one: socket.socket | None) -> int:
    """Bytes that wait in this machine's kernel, where it can say so."""
    if one is None:
        return 0
    try:
        return int.from_bytes(ioctl(one.fileno(), TIOCOUTQ, bytes(4)), sys.byteorder)
    except OSError:
        return 0


def _plain(transport: asyncio.Transport) -> int | None:
    """The socket's number, unless what is written to it must be encrypted. It is valid until connection_lost."""
    one = transport.get_extra_info("socket")
    return None if one is None or transport.get_extra_info("sslcontext") else one.fileno()

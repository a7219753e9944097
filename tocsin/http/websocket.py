"""WebSockets to peers that may not read, or send much that says nothing: either takes a bounded time and memory."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import CloseCode, Frame

# How long a peer may take for what was sent to it before it was closed.
CLOSE_SECONDS: Final = 2.0
# Pings, pongs and small parts of messages that a peer may send at once, and in a second for long.
BURST: Final = 1000.0
PER_SECOND: Final = 100.0
SMALL_BYTES: Final = 256
# So much is read before others have their turn: in what the system hands over at once may be thousands of frames.
SLICE_BYTES: Final = 8192
_TOO_MANY: Final = "too many pings or parts of messages in too short a time"


class ServerWebSocket(WebSocketsSansIOProtocol):
    """Uvicorn's, but cut off when a peer does not take the last bytes, and read a little at a time.

    Uvicorn closes a transport and waits until it is empty. A peer that is alive and does not read would keep it, with
    all that is in line, for ever, and hold up the server when it stops. And Uvicorn reads whatever has come at once,
    and answers all pings in it before anybody else has a turn.

    What can go wrong: a peer sends too many frames that are no messages. It is closed with 1008.
    """

    _cut: asyncio.TimerHandle | None = None

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        # What has come and is not read; meanwhile nothing more is taken from the system.
        self._unread = bytearray()
        self._reading_on = False
        self._frames_left, self._frames_at = BURST, self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        self._unread += data
        self._read()

    async def receive(self) -> ASGIReceiveEvent:
        """What the peer says next."""
        message = await super().receive()
        self._read_on()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        """Sends what the application says. A handshake that it has refused is over, which Uvicorn takes for a fault."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True
        self._read_on()

    async def run_asgi(self) -> None:
        """One connection, from its handshake until the application is done with it."""
        await super().run_asgi()
        self._cut_later()

    def shutdown(self) -> None:
        """Closes it since the server stops."""
        super().shutdown()
        self._cut_later()

    def keepalive_timeout(self) -> None:
        """Closes it since a ping was not answered."""
        super().keepalive_timeout()
        self._cut_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        if self._cut is not None:
            self._cut.cancel()
        super().connection_lost(exc)

    def handle_ping(self) -> None:
        """A ping has come, and its answer is ready."""
        if self._may():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """A pong has come."""
        if self._may():
            super().handle_pong(event)

    def handle_text(self, event: Frame) -> None:
        """A message has come, or its first part."""
        if self._may(event):
            super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """A message has come, or its first part."""
        if self._may(event):
            super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """A further part of a message has come."""
        if self._may(event):
            super().handle_cont(event)

    def _read(self) -> None:
        """Reads a little, unless the application is to hear something else first."""
        self._reading_on = False
        if not self.read_paused and not self.transport.is_closing():
            data = bytes(self._unread[:SLICE_BYTES])
            del self._unread[:SLICE_BYTES]
            super().data_received(data)
        if not self._unread and not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
        self._read_on()

    def _read_on(self) -> None:
        """Reads more, after the others' turn."""
        if self._unread and not self.read_paused and not self.transport.is_closing():
            self.transport.pause_reading()
            if not self._reading_on:
                self._reading_on = True
                self.loop.call_soon(self._read)

    def _may(self, frame: Frame | None = None) -> bool:
        """Whether a frame is taken: a message, a large part of one, or one of not too many others."""
        if self.transport.is_closing():
            return False
        if frame is not None and (frame.fin or len(frame.data) >= SMALL_BYTES):
            return True
        now = self.loop.time()
        self._frames_left = min(BURST, self._frames_left + (now - self._frames_at) * PER_SECOND) - 1
        self._frames_at = now
        if self._frames_left >= 0:
            return True
        self.conn.fail(CloseCode.POLICY_VIOLATION, _TOO_MANY)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        self._cut_later()
        return False

    def _cut_later(self) -> None:
        if self._cut is None and self in self.connections:
            self._cut = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

"""WebSockets of the overlay: what clients say is short, while brokers tell each other much at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.http11 import Request

from tocsin.errors import InvalidError
from tocsin.http.websocket import ServerWebSocket
from tocsin.overlay.server.outgoing import Ending, Outgoing

LINK: Final = "/link"
CLIENT: Final = "/client"
# How long a peer may take for what waits when its connection ends.
FLUSH_SECONDS: Final = 30.0


class OverlayWebSocket(ServerWebSocket):
    """Bounds messages by the settings' ``ws_max_size``, but for links, whose brokers have shown their token.

    A publisher that is slowed down is read late, and so is its answer to a ping: as long as it has said something, or
    is not read, it is there.
    """

    _heard_at = 0.0

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        self._heard_at = self.loop.time()
        super().data_received(data)

    def keepalive_timeout(self) -> None:
        """A ping was not answered in time, as far as was read."""
        if self.read_paused or self._unread or self._heard_at > self.ping_sent_at:
            self.pong_timer = self.pending_ping_payload = None
            self.schedule_ping()
        else:
            super().keepalive_timeout()

    def handle_connect(self, event: Request) -> None:
        """A handshake has come."""
        if event.path.partition("?")[0] == LINK:
            self.conn.max_message_size = None
        super().handle_connect(event)


async def receive(socket: WebSocket) -> str:
    """The next text; raises WebSocketDisconnect at the end, and InvalidError for what is no text."""
    received = await socket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1005))
    text: str | None = received.get("text")
    if text is None:
        raise InvalidError("messages are JSON text, not binary")
    return text


async def finish(socket: WebSocket, outgoing: Outgoing, send: Callable[[str], Awaitable[None]] | None = None) -> None:
    """Sends what waits to whoever reads it, and closes."""
    ending = outgoing.ending or Ending(1000, "")
    with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
        async with asyncio.timeout(FLUSH_SECONDS):
            await outgoing.flush(send or socket.send_text)
            await socket.close(ending.code, ending.brief_reason)

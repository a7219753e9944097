"""WebSockets to peers that may not read: closing one takes a bounded time."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# How long a peer may take for what was sent to it before it was closed.
CLOSE_SECONDS: Final = 2.0


class ServerWebSocket(WebSocketsSansIOProtocol):
    """Uvicorn's, but cut off when a peer does not take the last bytes.

    Uvicorn closes a transport and waits until it is empty. A peer that is alive and does not read would keep it, with
    all that is in line, for ever, and hold up the server when it stops.
    """

    _cut: asyncio.TimerHandle | None = None

    async def send(self, message: ASGISendEvent) -> None:
        """Sends what the application says. A handshake that it has refused is over, which Uvicorn takes for a fault."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

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

    def _cut_later(self) -> None:
        if self._cut is None and self in self.connections:
            self._cut = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

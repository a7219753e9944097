"""What the sockets of brokers and of nodes share: whose they are, for how long, and what comes next on them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from tocsin.data.server.access import Access, Gate
from tocsin.errors import BusyError, StorageError

WATCH_SECONDS: Final = 1.0
UNSUPPORTED: Final = 1003


class TokenCheck:
    """Who may hold a connection: whoever has the token of ``name``, or an admin's."""

    def __init__(self, gate: Gate, access: Access, name: str) -> None:
        self._gate, self._access, self._name = gate, access, name

    def require(self, token: str) -> None:
        """Refuses a token that is another's, or nobody's."""
        caller = self._gate.holder(token)
        caller.require(self._access)
        caller.require_name(self._name)

    async def watch(self, token: str) -> None:
        """Ends when the token is revoked, with the reason."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            # While the store cannot be read, what it said last counts.
            with suppress(StorageError, BusyError):
                await asyncio.to_thread(self.require, token)


async def next_text(websocket: WebSocket) -> str | None:
    """The next message; None when it is binary, and the connection therefore closed."""
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    text: str | None = message.get("text")
    if text is None:
        await websocket.close(UNSUPPORTED, "messages are JSON text")
    return text

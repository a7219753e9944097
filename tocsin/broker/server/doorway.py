"""Where every connection begins: as HTTP, which most leave at once for a WebSocket.

Uvicorn waits for a request without end and keeps whatever a client calls its head; here both have bounds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tocsin.broker.server.connection import Connection

HEAD_BYTES: Final = 1 << 16
# Room for operators and their tools, however few subscribers are allowed.
LEAST: Final = 1000


class Doorways:
    """All connections that are not WebSockets (yet).

    What can go wrong: no request comes in time, or only half of one (ended), a request that is larger than any here
    can be (400), more doorways than connections are allowed (ended).
    """

    def __init__(self, connection: Callable[[], Connection], seconds: float, most: int) -> None:
        """``connection`` makes the WebSocket that a doorway leads to."""
        self.connection, self._seconds, self._most = connection, seconds, max(most, LEAST)
        self._begun: dict[Doorway, float] = {}

    def protocol(self, **given: Any) -> Doorway:
        """For Uvicorn, in place of a class."""
        return Doorway(self, **given)

    def entered(self, doorway: Doorway) -> bool:
        """Counts one more; whether it may stay."""
        self._begun[doorway] = asyncio.get_running_loop().time()
        return len(self._begun) <= self._most

    def asked(self, doorway: Doorway) -> None:
        """A request has come: from now on the next may be waited for."""
        self._begun[doorway] = asyncio.get_running_loop().time()

    def left(self, doorway: Doorway) -> None:
        """It has become a WebSocket, or is gone."""
        self._begun.pop(doorway, None)

    def stop(self) -> None:
        """Ends those that ask for nothing now, without waiting for their peers as TLS would."""
        for doorway in list(self._begun):
            doorway.end_if_idle()

    async def end_late_ones(self) -> None:
        """Ends those that ask for nothing, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            late = loop.time() - self._seconds
            for doorway in [doorway for doorway, began in self._begun.items() if began < late]:
                doorway.end_if_idle()


class Doorway(HttpToolsProtocol):
    """One of them."""

    def __init__(self, doorways: Doorways, **given: Any) -> None:
        super().__init__(**given)
        self._doorways, self._unread = doorways, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins."""
        super().connection_made(transport)
        if not self._doorways.entered(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends."""
        self._doorways.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes no more than a request's head may have."""
        self._unread += len(data)
        if self._unread > HEAD_BYTES:
            self.send_400_response("The request is too large.")
            return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """A request has come."""
        self._unread = 0
        self._doorways.asked(self)
        super().on_headers_complete()

    def handle_websocket_upgrade(self) -> None:
        """Becomes a WebSocket."""
        self.connections.discard(self)
        self._doorways.left(self)
        connection = self._doorways.connection()
        connection.connection_made(self.transport)
        connection.data_received(self._request())
        self.transport.set_protocol(connection)
        # It refers to this object, and would stay until garbage is collected.
        self.parser = None  # type: ignore[assignment]

    def end_if_idle(self) -> None:
        """Ends, unless a call is being answered."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        if cycle is None or cycle.response_complete:
            self.transport.abort()

    def _request(self) -> bytes:
        head = [b"%b %b HTTP/%b" % (self.scope["method"].encode(), self.url, self.scope["http_version"].encode())]
        return b"\r\n".join([*head, *(b"%b: %b" % pair for pair in self.headers), b"", b""])

"""A broker's doorways: they lead to connections of subscribers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tocsin.broker.server.connection import SubscriberConnection
from tocsin.http import doorway


class SubscriberDoorways(doorway.Doorways):
    """As those of every server, but ``connection`` makes the WebSocket that they lead to."""

    def __init__(self, connection: Callable[[], SubscriberConnection], most: int, seconds: float) -> None:
        super().__init__(most, seconds)
        self.connection = connection

    def protocol(self, **given: Any) -> SubscriberDoorway:
        """For Uvicorn, in place of a class."""
        return SubscriberDoorway(self, **given)


class SubscriberDoorway(doorway.Doorway):
    """One of them."""

    def __init__(self, doorways: SubscriberDoorways, **given: Any) -> None:
        super().__init__(doorways, **given)
        self._leads_to = doorways.connection

    def handle_websocket_upgrade(self) -> None:
        """Becomes a subscriber's connection."""
        self.connections.discard(self)
        self._doorways.left(self)
        connection = self._leads_to()
        # First of all, so that it is the connection that hears of its end, whatever becomes of the handshake.
        self.transport.set_protocol(connection)
        connection.connection_made(self.transport)
        connection.data_received(self._request())
        # It refers to this object, and would stay until garbage is collected.
        self.parser = None  # type: ignore[assignment]

    def _request(self) -> bytes:
        head = [b"%b %b HTTP/%b" % (self.scope["method"].encode(), self.url, self.scope["http_version"].encode())]
        return b"\r\n".join([*head, *(b"%b: %b" % pair for pair in self.headers), b"", b""])

"""Where every connection begins: as HTTP, which some leave for a WebSocket.

Uvicorn waits for a request without end, and keeps whatever a client calls its head. Here everything that somebody may
do before it is known who they are has bounds: the size of a head and the time it takes, the time a body takes, the
requests that are sent ahead, and how many connections there are. One who asks at once is served however many others
say nothing: with too many of them, those who have been silent for longest have to go.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_BYTES: Final = 1 << 16
HEAD_SECONDS: Final = 10.0
# A body may take as long as a head, and a second more for each so many bytes of it that have come.
BODY_RATE: Final = 1024
# What a chunked body may have around a byte of it.
CHUNK_OVERHEAD: Final = 16
# Requests on one connection that wait for the answer to another.
AHEAD: Final = 16
# How long a client may leave an answer unread.
UNREAD_SECONDS: Final = 30.0
# Room for operators and their tools, however few connections are allowed.
LEAST: Final = 100
_SWEEP_SECONDS: Final = 1.0


class Doorways:
    """All connections of a server that are not WebSockets (yet).

    What can go wrong: no request comes in time, or only half of one (ended); a head that is larger than any here can
    be, or too many requests ahead (400); an answer that is not read (ended); more connections than are allowed (the
    longest silent one is ended, or the newest if all are being served).
    """

    def __init__(self, most: int, seconds: float | None = None) -> None:
        self._most, self._seconds = max(most, LEAST), HEAD_SECONDS if seconds is None else seconds
        # Each with since when it is waited for, the longest first.
        self._silent: dict[Doorway, float] = {}
        self._served: set[Doorway] = set()

    def __len__(self) -> int:
        return len(self._silent) + len(self._served)

    def protocol(self, **given: Any) -> Doorway:
        """For Uvicorn, in place of a class."""
        return Doorway(self, **given)

    def admit(self, doorway: Doorway) -> bool:
        """Counts one more; whether it may stay."""
        if len(self) >= self._most:
            if not self._silent:
                return False
            longest = next(iter(self._silent))
            self.left(longest)
            longest.transport.abort()
        self.waits(doorway)
        return True

    def waits(self, doorway: Doorway) -> None:
        """A request is waited for, from now on."""
        self.left(doorway)
        self._silent[doorway] = asyncio.get_running_loop().time()

    def asked(self, doorway: Doorway) -> None:
        """The head of a request has come."""
        self.left(doorway)
        self._served.add(doorway)

    def left(self, doorway: Doorway) -> None:
        """It has become a WebSocket, or is gone."""
        self._silent.pop(doorway, None)
        self._served.discard(doorway)

    def stop(self) -> None:
        """Ends those that ask for nothing now, without waiting for their peers as TLS would."""
        for doorway in list(self._silent):
            doorway.transport.abort()

    async def end_late_ones(self) -> None:
        """Ends those that take too long, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self._seconds))
            now = loop.time()
            silent = [one for one, since in self._silent.items() if now - since > self._seconds]
            for doorway in (*silent, *(one for one in self._served if one.is_late(now, self._seconds))):
                doorway.transport.abort()


class Doorway(HttpToolsProtocol):
    """One of them."""

    def __init__(self, doorways: Doorways, **given: Any) -> None:
        super().__init__(**given)
        self._doorways, self._room = doorways, HEAD_BYTES
        self._body_since: float | None = None
        self._body_bytes = 0
        self._unread_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins."""
        super().connection_made(transport)
        if not self._doorways.admit(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends."""
        self._doorways.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes no more than a request's head may have, beside bodies."""
        self._room -= len(data)
        super().data_received(data)
        if self._room < 0 and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_headers_complete(self) -> None:
        """The head of a request has come; raises ValueError, which is answered with 400, when it is too much."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
            raise ValueError("the head of the request is too large")
        if len(self.pipeline) >= AHEAD:
            raise ValueError("too many requests wait for their answers")
        self._room, self._body_since, self._body_bytes = HEAD_BYTES, self.loop.time(), 0
        self._doorways.asked(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body has come."""
        self._body_bytes += len(body)
        self._room = min(HEAD_BYTES, self._room + CHUNK_OVERHEAD * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A whole request has come."""
        self._body_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer was given."""
        super().on_response_complete()
        if self._idle() and self in self.connections:
            self._doorways.waits(self)

    def pause_writing(self) -> None:
        """The client does not keep up."""
        super().pause_writing()
        self._unread_since = self.loop.time()

    def resume_writing(self) -> None:
        """The client has taken most of what waited."""
        super().resume_writing()
        self._unread_since = None

    def handle_websocket_upgrade(self) -> None:
        """Becomes a WebSocket."""
        self._doorways.left(self)
        super().handle_websocket_upgrade()
        # It refers to this object, and would stay until garbage is collected.
        self.parser = None  # type: ignore[assignment]

    def is_late(self, now: float, seconds: float) -> bool:
        """Whether the rest of a body, or the reading of an answer, takes too long. If the server does not read now,
        that is no fault of the client's."""
        if self._unread_since is not None and now - self._unread_since > UNREAD_SECONDS:
            return True
        if self._body_since is None or self.flow.read_paused:
            return False
        return now - self._body_since > seconds + self._body_bytes / BODY_RATE

    def _idle(self) -> bool:
        cycle = cast(RequestResponseCycle | None, self.cycle)
        return cycle is None or cycle.response_complete

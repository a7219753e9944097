"""The subscribers' connections, all of them: numbered, counted, and looked after by one sweep for all."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Final, Protocol

from websockets.http11 import Request, Response

from tocsin.broker.server.connection import SubscriberConnection
from tocsin.broker.server.entrance import Entrance

# The connections are looked at in turn, so that no sweep is long.
TURNS: Final = 20
CLOSE_SECONDS: Final = 5.0


class Events(Protocol):
    """Who is told what happens to sessions."""

    def opened(self, session: int) -> None: ...

    def received(self, session: int, data: bytes) -> None: ...

    def flushed(self, session: int, waiting: int) -> None: ...

    def closed(self, session: int) -> None: ...

    def stranger(self) -> int | None: ...


class Connections:
    """Keeps every connection until it has ended.

    What can go wrong: a peer that is silent though it was asked (ended at once), one that does not end after a close
    (ended after CLOSE_SECONDS), one that does not take what it is sent (reported, so that it is sent no more), more
    than are allowed (the one longest without a login is ended; the newest is refused, if all have logged in).
    """

    def __init__(
        self, entrance: Entrance, events: Events, *, message_bytes: int, waiting_bytes: int, burst: float
    ) -> None:
        self.entrance = entrance
        self.message_bytes, self.burst = message_bytes, int(burst)
        # A report may wait until so much was written: less cannot make a session slow, nor keep a slow one so.
        self.quota = waiting_bytes // 4
        self.accepted, self.closes = 0, Counter[int]()
        self._events = events
        self._open: dict[int, SubscriberConnection] = {}
        self.get = self._open.get
        """The open connection of a session, if it is open; asked for each thing sent, so it is not a method of ours."""
        self._turns: list[dict[SubscriberConnection, None]] = [{} for _ in range(TURNS)]
        self._turn = 0
        self._pinged: dict[SubscriberConnection, None] = {}
        self._leaving: dict[SubscriberConnection, float] = {}
        self._owing: dict[SubscriberConnection, None] = {}
        self._stopping: asyncio.Future[None] | None = None
        self._last = 0

    def __len__(self) -> int:
        return len(self._open)

    def entering(self, connection: SubscriberConnection, request: Request) -> Response | None:  # noqa: ARG002
        """Why a handshake is refused, if it is."""
        return self.entrance.check(request, self._has_room)

    def entered(self, connection: SubscriberConnection) -> None:
        """Numbers a connection; no number is used twice."""
        self._last = connection.id = self._last + 1
        self._open[connection.id] = connection
        self._turns[connection.id % TURNS][connection] = None
        self.accepted += 1
        self._events.opened(connection.id)

    def received(self, connection: SubscriberConnection, data: bytes) -> None:
        """Passes a message on."""
        self._events.received(connection.id, data)

    def owing(self, connection: SubscriberConnection) -> None:
        """Has the next report say what waits for it."""
        if connection.id in self._open:
            if not self._owing:
                asyncio.get_running_loop().call_soon(self._report)
            self._owing[connection] = None

    def leaving(self, connection: SubscriberConnection) -> None:
        """A connection that is closed on this side, but not yet on the other."""
        self._leaving[connection] = asyncio.get_running_loop().time() + CLOSE_SECONDS
        self._forget(connection)

    def left(self, connection: SubscriberConnection, code: int) -> None:
        """A connection is gone."""
        self._leaving.pop(connection, None)
        if connection.id:
            self.closes[code] += 1
        self._forget(connection)
        if self._stopping and not self._leaving and not self._stopping.done():
            self._stopping.set_result(None)

    async def sweep(self, ping_seconds: float) -> None:
        """Asks silent connections for a sign of life, and ends those that give none, for ever."""
        while True:
            await asyncio.sleep(ping_seconds / TURNS)
            self._turn = (self._turn + 1) % TURNS
            for connection in list(self._turns[self._turn]):
                self._look_at(connection)

    async def end_late_ones(self) -> None:
        """Ends connections whose peers do not answer a close, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            for connection in [connection for connection, at in self._leaving.items() if at <= loop.time()]:
                connection.abort()

    async def stop(self) -> None:
        """Closes all connections, each after what was sent to it, and waits for their ends, though not for long."""
        self.entrance.open = False
        self._stopping = asyncio.get_running_loop().create_future()
        for connection in list(self._open.values()):
            connection.shutdown()
        if self._leaving:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._stopping
        for connection in list(self._leaving):
            connection.abort()

    def _has_room(self) -> bool:
        """Whether one more may come in, in place of whoever has been here for longest without a login if need be: those
        who say nothing must not keep others out."""
        if len(self._open) < self.entrance.most:
            return True
        stranger = self._open.get(self._events.stranger() or 0)
        if stranger is None:
            return False
        self._forget(stranger)
        stranger.abort()
        return True

    def _look_at(self, connection: SubscriberConnection) -> None:
        connection.idle = 0
        if connection.alive():
            self._pinged.pop(connection, None)
        elif connection in self._pinged:
            connection.abort()
        else:
            self._pinged[connection] = None
            connection.ping()

    def _report(self) -> None:
        """Whatever the kernel took at once is gone by the time this runs."""
        owing, self._owing = self._owing, {}
        for connection in owing:
            if connection.id in self._open:
                self._events.flushed(connection.id, connection.waiting())

    def _forget(self, connection: SubscriberConnection) -> None:
        if self._open.pop(connection.id, None):
            del self._turns[connection.id % TURNS][connection]
            self._pinged.pop(connection, None)
            self._owing.pop(connection, None)
            self._events.closed(connection.id)

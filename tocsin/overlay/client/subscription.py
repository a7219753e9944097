"""A content-based subscription: what keeps it at an edge, and gives the application each publication once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import Final, NamedTuple

import msgspec

from tocsin.alarm import Alarm
from tocsin.errors import InvalidError, UnavailableError
from tocsin.overlay import subscriber as core
from tocsin.overlay.client.socket import OverlaySocket
from tocsin.overlay.dialogue import Began, Gap, HeadCursor, Note, Refused, ToSubscriber
from tocsin.overlay.events import Tick

MOST_WAITING: Final = 1000
"""With so many publications waiting for the application, nothing more is read."""
_TOLD: Final[msgspec.json.Decoder[ToSubscriber]] = msgspec.json.Decoder(ToSubscriber)


class _Item(NamedTuple):
    """Something for the application, or nothing but how far it is then."""

    what: Note | Gap | None
    head: str
    cursor: HeadCursor


class ContentSubscription:
    """Publications that match, as they come: ``async for note in subscription``.

    ``cursors`` say how far the application is: a program that keeps them, and subscribes with them the next time, goes
    on where it was, at whatever edge. A publication counts as had when the next one is asked for.

    What can go wrong: an edge dies, or all do: others are tried, for ever, and what was missed comes then; what is not
    kept any more is told as a gap. The filter cannot be read, no edge takes the token, or at first no edge can be
    reached: each is raised.
    """

    def __init__(
        self,
        name: str,
        where: str,
        edges: Sequence[str],
        cursors: dict[str, HeadCursor],
        on_gap: Callable[[Gap], None] | None,
        token: str,
        ca: str,
    ) -> None:
        self.name, self.where, self.cursors = name, where, dict(cursors)
        self._edges, self._on_gap, self._token, self._ca = edges, on_gap, token, ca
        self._core = core.OverlaySubscriber(name, where, list(edges), SystemRandom(), dict(cursors))
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(lambda: self._tell(Tick()))
        self._sockets: dict[int, OverlaySocket] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._items: deque[_Item] = deque()
        self._something, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._had: _Item | None = None
        self._failures, self._over = 0, False
        self._began: asyncio.Future[None] = self._loop.create_future()
        self._error: Exception | None = None
        # Why an edge did not take it, the last one that did not.
        self._refusal: Exception | None = None

    @property
    def edge(self) -> str | None:
        """The URL of the edge where it is, or wants to be; None while it waits to try again."""
        return self._core.edge

    async def start(self) -> None:
        """Goes to an edge; returns when the subscription has begun at a head."""
        self._tell(core.Start())
        await self._began

    def __aiter__(self) -> ContentSubscription:
        return self

    async def __anext__(self) -> Note:
        """The next publication; the end when the subscription is closed."""
        self._take_in()
        while True:
            while self._items:
                item = self._had = self._items.popleft()
                if len(self._items) < MOST_WAITING:
                    self._room.set()
                if isinstance(item.what, Note):
                    return item.what
                if item.what and self._on_gap:
                    self._on_gap(item.what)
                self._take_in()
            if self._error:
                raise self._error
            if self._over:
                raise StopAsyncIteration
            self._something.clear()
            await self._something.wait()

    def done(self) -> None:
        """Counts the last publication as had, though the next one is not asked for yet."""
        self._take_in()

    async def close(self) -> None:
        """Leaves; who waits for the next publication is told that there is none."""
        self._end()
        await asyncio.gather(*(socket.close() for socket in self._sockets.values()), *self._closing)
        self._sockets.clear()

    def _end(self, error: Exception | None = None) -> None:
        self._over, self._error = True, self._error or error
        self._alarm.cancel()
        if not self._began.done():
            self._began.set_exception(self._error or UnavailableError("the subscription was closed"))
            # It is raised where it is awaited, if it is.
            self._began.exception()
        self._something.set()
        self._room.set()

    def _take_in(self) -> None:
        if self._had:
            self.cursors[self._had.head] = self._had.cursor
            self._had = None

    def _tell(self, event: core.SubscriberEvent) -> None:
        if self._over:
            return
        for action in self._core.handle(self._loop.time(), event):
            self._do(action)
        wake = self._core.wake()
        if wake is not None and not self._over:
            self._alarm.set(wake)

    def _do(self, action: core.SubscriberAction) -> None:
        match action:
            case core.Give(note):
                self._put(_Item(note, note.head, self._core.cursors[note.head]))
            case core.Miss(gap):
                self._put(_Item(gap, gap.head, self._core.cursors[gap.head]))
            case core.OpenEdge(number, edge):
                self._open(number, edge)
            case core.SendEdge(number, message):
                if number in self._sockets:
                    self._sockets[number].send(message)
            case core.CloseEdge(number):
                if socket := self._sockets.pop(number, None):
                    closing = asyncio.create_task(socket.close())
                    self._closing.add(closing)
                    closing.add_done_callback(self._closing.discard)
            case core.GiveUp(reason):
                self._end(self._refusal if self._refusal and str(self._refusal) == reason else InvalidError(reason))

    def _put(self, item: _Item) -> None:
        self._items.append(item)
        self._something.set()
        if len(self._items) >= MOST_WAITING:
            self._room.clear()

    def _open(self, number: int, edge: str) -> None:
        async def said(text: bytes) -> None:
            self._said(number, _TOLD.decode(text))
            await self._room.wait()

        self._sockets[number] = OverlaySocket(
            edge,
            self._token,
            self._ca,
            lambda: self._tell(core.EdgeOpened(number)),
            said,
            lambda reason: self._lost(number, edge, reason),
            lambda error: self._refused(number, error),
        )

    def _said(self, number: int, message: ToSubscriber) -> None:
        if number not in self._sockets:
            return
        before = dict(self._core.cursors) if not isinstance(message, Note) else None
        self._tell(core.EdgeSaid(number, message))
        if isinstance(message, Began) and not self._began.done():
            self._began.set_result(None)
        if before is not None and not isinstance(message, Gap | Refused):
            for head, cursor in self._core.cursors.items():
                if before.get(head) != cursor:
                    self._put(_Item(None, head, cursor))

    def _lost(self, number: int, edge: str, reason: str) -> None:
        self._fail(number, UnavailableError(f"no edge can be subscribed at: {edge}: {reason}"))
        self._tell(core.EdgeLost(number))

    def _refused(self, number: int, error: Exception) -> None:
        self._refusal = error
        self._fail(number, error)
        self._tell(core.EdgeRefused(number, str(error)))

    def _fail(self, number: int, error: Exception) -> None:
        """A connection is over, or could not be opened; if none could at first, that is all."""
        self._sockets.pop(number, None)
        self._failures += 1
        if not self._began.done() and self._failures >= len(self._edges):
            self._end(self._refusal or error)

"""A subscriber that follows when it is moved: as little as the protocol's rules ask for, and every byte counted."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from tocsin.bench.broker import websocket
from tocsin.bench.broker.sockets import Sockets
from tocsin.errors import UnavailableError
from tocsin.model.subscriber import Answer, Error, Moved, Note, Notes, Slow, Subscribed, Welcome

_ANSWER: Final = msgspec.json.Decoder[Answer](Answer)
_PATIENCE: Final = 120.0
_NORMAL: Final = b"\x88\x82\x00\x00\x00\x00\x03\xe8"  # a close frame with the code 1000


class Door:
    """One connection of a traveller, from its opening on."""

    def __init__(self, traveller: Traveller, url: str) -> None:
        self.url, self._traveller = url, traveller
        self._socket = socket.create_connection(websocket.address(url))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._came, self._open = bytearray(), False
        traveller.sockets.listen(self._socket, self._take)
        host, _, path = url.removeprefix("ws://").partition("/")
        self.send(websocket.upgrade(f"/{path}", host))

    def send(self, data: bytes) -> None:
        """Sends something that is not part of delivery."""
        self._traveller.overhead += len(data)
        self._socket.sendall(data)

    def close(self) -> None:
        """Ends the connection."""
        self._traveller.sockets.dismiss(self._socket)

    def _take(self, buffer: memoryview) -> int:
        size = self._socket.recv_into(buffer)
        if not size:
            self.close()
            self._traveller.lost(self)
            return 0
        self._came += buffer[:size]
        if not self._open:
            self._enter()
        before = len(self._came)
        for payload in websocket.payloads(self._came):
            self._traveller.told(self, before - len(self._came), _ANSWER.decode(payload))
            before = len(self._came)
        return 0

    def _enter(self) -> None:
        before = len(self._came)
        if websocket.take_upgrade(self._came):
            self._open = True
            self._traveller.overhead += before - len(self._came)
            self._traveller.enter(self)


class Traveller:
    """A subscriber. ``delivered`` and ``overhead`` are bytes; ``longest`` is the longest time without anything new.

    What can go wrong: a connection is lost though it was not left, or a request is refused (UnavailableError).
    """

    def __init__(
        self,
        sockets: Sockets,
        url: str,
        token: str,
        channel: str,
        wanted: Sequence[dict[str, Any]],
        show: Callable[[Note], None] | None = None,
    ) -> None:
        """``show`` is given everything new."""
        self.sockets, self._token, self._channel, self._wanted, self._show = sockets, token, channel, wanted, show
        self.cursors: dict[int, int] = {}
        self.count = self.delivered = self.overhead = self.moves = 0
        self.longest, self._last = 0.0, time.perf_counter()
        self._here = Door(self, url)
        self._next: Door | None = None

    @property
    def ready(self) -> bool:
        """Whether it has all its subscriptions."""
        return len(self.cursors) == len(self._wanted)

    @property
    def url(self) -> str:
        """Where it is."""
        return self._here.url

    def start(self) -> None:
        """Counts from now on."""
        self.count = self.delivered = self.overhead = self.moves = 0
        self.longest, self._last = 0.0, time.perf_counter()

    def enter(self, door: Door) -> None:
        """A connection is open."""
        cursors = {str(be): cursor for be, cursor in self.cursors.items()}
        door.send(websocket.text({"type": "login", "token": self._token, "cursors": cursors}))

    def lost(self, door: Door) -> None:
        """A connection is gone."""
        if door is self._here:
            raise UnavailableError("a subscriber lost its connection while it was moved")
        self._next = None

    def told(self, door: Door, size: int, message: Answer) -> None:
        """The broker has said something in so many bytes."""
        if isinstance(message, Notes):
            self._take(message, size)
            return
        self.overhead += size
        match message:
            case Welcome():
                self._welcomed(door)
            case Subscribed(_, held):
                self.cursors[held.subscription] = held.cursor
            case Moved(url) if url != self._here.url and self._next is None:
                self._next = Door(self, url)
            case Error() | Slow():
                raise UnavailableError(f"a subscriber was told {message}")

    def _take(self, message: Notes, size: int) -> None:
        """Only what is new counts as delivered, and ends the silence."""
        new = [note for note in message.notes if note.e > self.cursors.get(note.s, 0)]
        for note in new:
            self.cursors[note.s] = note.e
            if self._show:
                self._show(note)
        share = size * len(new) // len(message.notes)
        self.delivered += share
        self.overhead += size - share
        self.count += len(new)
        if new:
            now = time.perf_counter()
            self.longest, self._last = max(self.longest, now - self._last), now

    def _welcomed(self, door: Door) -> None:
        if door is self._next:
            before, self._here, self._next = self._here, door, None
            before.send(_NORMAL)
            before.close()
            self.moves += 1
            return
        for id, parameters in enumerate(self._wanted):
            request = {"type": "subscribe", "id": id, "channel": self._channel, "parameters": parameters}
            door.send(websocket.text(request))


def await_subscriptions(sockets: Sockets, people: Sequence[Traveller]) -> None:
    """Waits until everybody has all subscriptions."""
    deadline = time.monotonic() + _PATIENCE
    while not all(one.ready for one in people):
        if time.monotonic() > deadline:
            raise UnavailableError(f"not everybody had subscribed within {_PATIENCE:.0f} seconds")
        sockets.attend(0.1)

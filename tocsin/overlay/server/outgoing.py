"""What waits to be sent on a connection, and why it ends."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec

UNREADABLE: Final = 4400
UNREAD: Final = 4429
REPLACED: Final = 4409
EXPIRED: Final = 4401
CIRCLE: Final = 4410
# A close frame takes 123 bytes of reason.
_LONGEST_REASON: Final = 120

encode: Final = msgspec.json.Encoder().encode


class Ending(NamedTuple):
    """How a connection is closed."""

    code: int
    reason: str

    @property
    def brief_reason(self) -> str:
        """As much of it as a close frame takes."""
        return self.reason.encode()[:_LONGEST_REASON].decode(errors="ignore")


class PendingBytes:
    """What waits on all ``connections`` of one bearer together, of which ``most`` bytes may."""

    def __init__(self, most: int) -> None:
        self._most, self.size, self.connections = most, 0, 0

    def is_too_much(self, size: int) -> bool:
        """Whether it is, and this connection has no less waiting than they have on average: others are spared."""
        return self.size > self._most and size * self.connections >= self.size


class Outgoing:
    """Texts in order; urgent ones overtake the others.

    With more than ``most`` bytes waiting the next text is the last straw: nothing more is taken, and the connection
    ends when the rest is sent. So one text may be of any size, and who reads slowly gets what was promised before. The
    same goes for what is ``pending`` on all connections of one bearer, to whom one counts until it is ``closed``.
    """

    def __init__(self, most: int, pending: PendingBytes | None = None) -> None:
        self._most, self._size = most, 0
        self._pending = pending or PendingBytes(sys.maxsize)
        self._urgent: deque[str] = deque()
        self._others: deque[str] = deque()
        self._something, self._ended = asyncio.Event(), asyncio.Event()
        self.ending: Ending | None = None
        self._flushed: tuple[int, Callable[[], None]] | None = None

    @property
    def size(self) -> int:
        """How much waits."""
        return self._size

    def put(self, text: str, urgent: bool = False) -> None:
        """One more, unless the connection ends."""
        if self.ending:
            return
        if self._size > self._most or self._pending.is_too_much(self._size):
            self.end(UNREAD, "what is sent is not read")
            return
        (self._urgent if urgent else self._others).append(text)
        self._count(len(text))
        self._something.set()

    def when_flushed(self, size: int, call: Callable[[], None]) -> None:
        """Calls once, when no more than so much waits; only the last one that asked is called."""
        self._flushed = size, call
        self._look()

    def end(self, code: int, reason: str) -> None:
        """Takes nothing more; the first reason counts."""
        if self.ending is None:
            self.ending = Ending(code, reason)
            self._ended.set()

    async def ended(self) -> None:
        """Returns when nothing more is taken."""
        await self._ended.wait()

    async def send_all(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Sends whatever comes, for ever."""
        while True:
            await self.flush(send)
            self._something.clear()
            await self._something.wait()

    async def flush(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Sends what waits. A text whose sending is cancelled still waits, so that none is left out."""
        while waiting := self._urgent or self._others:
            await send(waiting[0])
            self._count(-len(waiting.popleft()))
            self._look()

    def closed(self) -> None:
        """What still waits is not sent any more."""
        self._urgent.clear()
        self._others.clear()
        self._count(-self._size)

    def _count(self, size: int) -> None:
        self._size += size
        self._pending.size += size

    def _look(self) -> None:
        if self._flushed and self._size <= self._flushed[0]:
            (_, call), self._flushed = self._flushed, None
            call()

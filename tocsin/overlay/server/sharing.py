"""What the bearers of signed tokens may have of an edge's output, of what waits there, and of its time.

A bearer may have many connections. What it has of an edge is counted over all of them, so that one person's are no more
to it than another's one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from math import inf
from time import thread_time
from typing import Any, Final

from tocsin.overlay.server.outgoing import PendingBytes
from tocsin.overlay.server.rates import TokenBucket
from tocsin.settings.overlay import OverlaySettings

Send = Callable[[str], Coroutine[Any, Any, None]]

WINDOW_SECONDS: Final = 0.1
PER_SECOND_EACH: Final = 30.0
"""Messages that a bearer's connections may send in a second for long; as many as there may be connections, at once."""

TIME_EACH: Final = 0.1
"""Of an edge's time, what a bearer may take with what it says, whatever its filters are like."""
TIME_OF_ALL: Final = 0.5
"""The same of all clients together who cannot be told from each other."""
_TIME_BURST: Final = 2.0


def water_level(demands: Iterable[float], most: float) -> float:
    """What each may have at most, so that all have no more together, and whoever wants less has what it wants."""
    rising = sorted(demands)
    for at, demand in enumerate(rising):
        share = most / (len(rising) - at)
        if demand > share:
            return share
        most -= demand
    return inf


class OutputWindow:
    """Who may send how much in a short time in which ``most`` bytes can be sent: nobody more than that, and while all
    together want more, nobody more than its share."""

    def __init__(self, most: float) -> None:
        self._most = self._level = most
        self._sent: dict[str, float] = {}

    def may_send(self, bearer: str, size: int) -> bool:
        """Whether a bearer may send so much now, which then counts; the first text may be of any size."""
        sent = self._sent.get(bearer, 0.0)
        if sent and sent + size > self._level:
            return False
        self._sent[bearer] = sent + size
        return True

    def turn(self, waiting: Mapping[str, float]) -> None:
        """The next window begins, with so many bytes waiting of each. What a bearer had beyond its share counts on."""
        demands = {bearer: self._sent.get(bearer, 0.0) + size for bearer, size in waiting.items()}
        demands = {**self._sent, **demands}
        self._sent = {bearer: sent - self._level for bearer, sent in self._sent.items() if sent > self._level}
        self._level = min(self._most, water_level(demands.values(), self._most))


class TimeShare:
    """What somebody may take of the loop's time with what it says: so much for long, two seconds at once. One thing
    is heard after the other, whatever connections they come on, so that others have their turn in between."""

    def __init__(self, share: float, now: float) -> None:
        self._left, self._turn = TokenBucket(share, _TIME_BURST, now), asyncio.Lock()

    def is_unused(self, now: float) -> bool:
        """Whether it is as when it was made."""
        return self._left.is_full(now) and not self._turn.locked()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Begins when it is its turn; what is done in it counts."""
        async with self._turn:
            if seconds := self._left.take(0.0, asyncio.get_running_loop().time()):
                await asyncio.sleep(seconds)
            with self.spend():
                yield

    @contextmanager
    def spend(self) -> Iterator[None]:
        """What is done in it counts, though it could not wait."""
        began = thread_time()
        try:
            yield
        finally:
            self._left.take(thread_time() - began, asyncio.get_running_loop().time())


class Bearers:
    """What each bearer of a signed token has here: its connections, what waits on them, and what it may say."""

    def __init__(self, settings: OverlaySettings) -> None:
        self._settings = settings
        self._pending: dict[str, PendingBytes] = {}
        self._budgets: dict[str, TokenBucket] = {}
        self._times: dict[str, TimeShare] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def connections(self, bearer: str) -> int:
        """How many there are."""
        return self._pending[bearer].connections if bearer in self._pending else 0

    def open(self, bearer: str) -> PendingBytes | None:
        """One connection more; what waits on all of them. None for clients that cannot be told from others."""
        if not bearer:
            return None
        pending = self._pending.setdefault(bearer, PendingBytes(self._settings.waiting_bytes_each))
        pending.connections += 1
        return pending

    def close(self, bearer: str) -> None:
        """One connection less."""
        if bearer:
            self._pending[bearer].connections -= 1
            if not self._pending[bearer].connections:
                del self._pending[bearer]

    def time_of(self, bearer: str, now: float) -> TimeShare:
        """What a bearer may take of the time here; without a name, what all may who have none."""
        if bearer not in self._times:
            self._times = {name: each for name, each in self._times.items() if not each.is_unused(now)}
            self._times[bearer] = TimeShare(TIME_EACH if bearer else TIME_OF_ALL, now)
        return self._times[bearer]

    async def speak(self, bearer: str, now: float) -> None:
        """Returns when a bearer may say one thing more."""
        if not bearer:
            return
        if bearer not in self._budgets:
            self._budgets = {name: each for name, each in self._budgets.items() if not each.is_full(now)}
            self._budgets[bearer] = TokenBucket(PER_SECOND_EACH, self._settings.connections_each, now)
        if seconds := self._budgets[bearer].take(1, now):
            await asyncio.sleep(seconds)


class FairOutput:
    """An edge's output, of which every bearer gets its share when there is too little for all. A bearer that is alone
    here may have whatever it can."""

    def __init__(self, bandwidth: float, bearers: Bearers) -> None:
        self._bearers = bearers
        self._window, self._most = OutputWindow(bandwidth * WINDOW_SECONDS), bandwidth * WINDOW_SECONDS
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        self._ends = -inf
        self._timer: asyncio.TimerHandle | None = None

    def paced(self, bearer: str, send: Send) -> Send:
        """Sends when the bearer may; without one nobody can be told from others, and whoever wants may."""

        async def send_in_turn(text: str) -> None:
            await self.take(bearer, len(text))
            await send(text)

        return send_in_turn if bearer else send

    async def take(self, bearer: str, size: int) -> None:
        """Returns when a bearer may send so much."""
        if len(self._bearers) < 2:
            return
        if self._loop.time() >= self._ends:
            self._turn()
        if bearer not in self._waiting and self._window.may_send(bearer, size):
            return
        turn = self._loop.create_future()
        self._waiting.setdefault(bearer, deque()).append((size, turn))
        self._wake()
        await turn

    def _turn(self) -> None:
        now = self._loop.time()
        if now >= self._ends + WINDOW_SECONDS and not self._waiting:
            self._window = OutputWindow(self._most)
        self._window.turn({bearer: sum(size for size, _ in each) for bearer, each in self._waiting.items()})
        self._ends, self._timer = now + WINDOW_SECONDS, None
        for bearer in list(self._waiting):
            self._release(bearer, self._waiting[bearer])
        self._wake()

    def _release(self, bearer: str, waiting: deque[tuple[int, asyncio.Future[None]]]) -> None:
        while waiting and (waiting[0][1].done() or self._window.may_send(bearer, waiting[0][0])):
            _, turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
        if not waiting:
            del self._waiting[bearer]

    def _wake(self) -> None:
        if self._waiting and self._timer is None:
            self._timer = self._loop.call_at(self._ends, self._turn)

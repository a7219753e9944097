"""What a node says, on its way to the heads: in its order, but that reports do not wait for what takes time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from tocsin.data.sharing.wire import FromWorker, ToHead
from tocsin.slices.messages import Commit, NodeReport

MOST_WAITING: Final = 16
"""Messages about a feed that may wait while a commit is checked; a node that works as it should has a few."""

_Feed = tuple[str, str]


class IncomingMessages:
    """Messages of one node. On the event loop.

    Before the core hears of a commit, its files are looked up in the lake, which may take long. Meanwhile what else is
    said about the feed waits behind it, in order, and other feeds of the node go on. Its reports pass by: who reports
    is not silent, however slow the lake is.

    What can go wrong: a message makes no sense (``failed`` is told, and the rest is not heard any more); too many wait
    (:meth:`put` does not return before there is room, so that nothing more is read).

    Args:
        hear: tells the head of a feed; takes its time for a commit only.
        failed: told why a message that has waited was refused.
    """

    def __init__(
        self,
        hear: Callable[[FromWorker], Awaitable[None]],
        failed: Callable[[Exception], None],
        most: int = MOST_WAITING,
    ) -> None:
        self._hear, self._failed, self._most = hear, failed, most
        # A feed that is made anew has messages of its own: what is said to the former head does not hold them up.
        self._waiting: dict[_Feed, deque[FromWorker]] = {}
        self._tasks: dict[_Feed, asyncio.Task[None]] = {}
        self._room = asyncio.Event()

    async def put(self, said: FromWorker) -> None:
        """The next message. Raises TocsinError if it makes no sense and had not to wait."""
        feed, message = (said.feed, said.incarnation), said.message if isinstance(said, ToHead) else None
        if isinstance(message, NodeReport) or (feed not in self._tasks and not isinstance(message, Commit)):
            await self._hear(said)
            return
        while len(self._waiting.get(feed, ())) >= self._most:
            self._room.clear()
            await self._room.wait()
        self._waiting.setdefault(feed, deque()).append(said)
        if feed not in self._tasks:
            self._tasks[feed] = asyncio.create_task(self._pass_on(feed))

    async def stop(self) -> None:
        """Passes on nothing any more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass_on(self, feed: _Feed) -> None:
        waiting = self._waiting[feed]
        try:
            while waiting:
                await self._hear(waiting[0])
                waiting.popleft()
                self._room.set()
        except Exception as error:
            self._failed(error)
        finally:
            del self._waiting[feed], self._tasks[feed]
            self._room.set()

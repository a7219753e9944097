"""What waits to be sent to a node, in its order; of what a node is told of a channel, only the newest."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from itertools import count

from tocsin.data.sharing.wire import FeedChannel, FeedChannelEnded, ForNode


class OutgoingMessages:
    """Messages for a node that may be slow to read. On the event loop.

    What it is told of a channel is long, and may change many times a second. One such message takes the place of the
    one before that waits, so that of each channel of a feed there is one at most.

    Args:
        most: messages that may wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: OrderedDict[Hashable, ForNode] = OrderedDict()
        self._numbers = count(1)
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: ForNode) -> bool:
        """Whether there was room for it."""
        key = self._key(message)
        if key not in self._waiting and len(self._waiting) >= self._most:
            return False
        self._waiting[key] = message
        self._some.set()
        return True

    async def take(self) -> ForNode:
        """The next one, when there is one."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
        return self._waiting.popitem(last=False)[1]

    def _key(self, message: ForNode) -> Hashable:
        """By which a message replaces another: of one incarnation, as what was said of a feed before counts no more."""
        match message:
            case FeedChannel(feed, incarnation, channel):
                return feed, incarnation, channel.name
            case FeedChannelEnded(feed, incarnation, name):
                return feed, incarnation, name
        return next(self._numbers)

"""A queue for one reader that has an end: what is put in it is read first, then how it ended."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Items in order. With ``most``, the oldest are dropped beyond so many; otherwise who puts must bound them.

    Reading ends like an iterator, or raises what it ended with. Cancelling a read loses nothing.
    """

    def __init__(self, most: int | None = None) -> None:
        self._items: deque[T] = deque(maxlen=most)
        self._ended = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()

    def put(self, item: T) -> None:
        """Adds an item, unless it has ended."""
        if not self._ended:
            self._items.append(item)
            self._changed.set()

    def end(self, error: Exception | None) -> None:
        """Nothing comes any more; the first end counts."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    def clear(self) -> None:
        """Drops what is not read yet."""
        self._items.clear()

    def __aiter__(self) -> Mailbox[T]:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._error:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._items.popleft()

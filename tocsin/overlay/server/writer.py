"""Storing what a head wants stored: batch after batch, in a thread, and never giving up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tocsin.errors import StorageError
from tocsin.log import get_logger
from tocsin.overlay.messages import Routed
from tocsin.overlay.server.store import ReplayStore

log = get_logger(__name__)

_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 2.0


class LogWriter:
    """Writes publications in order; those that come while some are being written are written together.

    ``most`` may wait: publishers are not read while more do. What can go wrong: the store refuses. It is told again,
    for ever, since nothing may be said before it is stored; when the server stops, once more. ``refused`` is whether it
    does now.
    """

    def __init__(self, store: ReplayStore, most: int, stored: Callable[[int], None]) -> None:
        self._store, self._most, self._stored = store, most, stored
        self._waiting: list[Routed] = []
        self._something, self._ending, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._room.set()
        self.refused = False

    def add(self, publication: Routed) -> None:
        """One more to be stored."""
        self._waiting.append(publication)
        self._something.set()
        if len(self._waiting) >= self._most:
            self._room.clear()

    async def room(self) -> None:
        """Returns when not too many wait."""
        await self._room.wait()

    def end(self) -> None:
        """Lets :meth:`run` return once nothing waits, or the store refuses."""
        self._ending.set()
        self._something.set()

    async def run(self) -> None:
        """Writes until :meth:`end`."""
        while True:
            await self._something.wait()
            self._something.clear()
            if self._waiting and not await self._write():
                return
            if self._ending.is_set() and not self._waiting:
                return

    async def _write(self) -> bool:
        """Writes all that waits; False when the store refuses and the server stops."""
        wait, batch = _FIRST_WAIT, self._waiting
        self._waiting = []
        self._room.set()
        while not await self._try(batch):
            if self._ending.is_set():
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._ending.wait()
            wait = min(wait * 2, _LONGEST_WAIT)
        self._stored(batch[-1].offset)
        return True

    async def _try(self, batch: list[Routed]) -> bool:
        try:
            await asyncio.to_thread(self._store.append, batch)
        except StorageError as error:
            log.warning("the disk refuses, nothing is said until it does not", error=str(error))
            self.refused = True
            return False
        self.refused = False
        return True

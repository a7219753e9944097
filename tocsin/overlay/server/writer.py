"""Storing what a head wants stored: batch after batch, in a thread, and never giving up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from tocsin.errors import StorageError
from tocsin.log import get_logger
from tocsin.overlay.messages import Routed
from tocsin.overlay.server.store import ReplayStore

log = get_logger(__name__)

_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 2.0


class _Batch(NamedTuple):
    """What is written at once: first of all, which publishers are forgotten."""

    publications: list[Routed]
    size: int
    forgotten: list[str]
    floor: int


class LogWriter:
    """Writes publications in order; those that come while some are being written are written together.

    ``most`` may be unstored, and ``most_bytes`` of them, with those that are being written: publishers are not heard
    while there are more. What can go wrong: the store refuses. It is told again, for ever, since nothing may be said
    before it is stored; when the server stops, once more. ``refused`` is whether it does now.
    """

    def __init__(self, store: ReplayStore, most: int, most_bytes: int, stored: Callable[[int], None]) -> None:
        self._store, self._most, self._most_bytes, self._stored = store, most, most_bytes, stored
        self._waiting: list[Routed] = []
        self._forgotten: list[str] = []
        self._floor = 0
        # Of those that wait, and of all that is not stored.
        self._waiting_bytes = self._unstored_bytes = self._unstored = 0
        self._something, self._ending, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._room.set()
        self.refused = False

    def add(self, publication: Routed) -> None:
        """One more to be stored."""
        size = len(_encode(publication))
        self._waiting.append(publication)
        self._waiting_bytes += size
        self._something.set()
        self._count(1, size)

    def forget(self, names: list[str], floor: int) -> None:
        """These publishers are to be known no more."""
        self._forgotten += names
        self._floor = floor
        self._something.set()

    async def room(self) -> None:
        """Returns when not too much is unstored; whoever adds something then does so at once."""
        while not self._room.is_set():
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
            if (self._waiting or self._forgotten) and not await self._write(self._take()):
                return
            if self._ending.is_set() and not self._waiting:
                return

    def _take(self) -> _Batch:
        batch = _Batch(self._waiting, self._waiting_bytes, self._forgotten, self._floor)
        self._waiting, self._waiting_bytes, self._forgotten = [], 0, []
        return batch

    async def _write(self, batch: _Batch) -> bool:
        """Writes a batch; False when the store refuses and the server stops."""
        wait = _FIRST_WAIT
        while not await self._try(batch):
            if self._ending.is_set():
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._ending.wait()
            wait = min(wait * 2, _LONGEST_WAIT)
        if batch.publications:
            self._count(-len(batch.publications), -batch.size)
            self._stored(batch.publications[-1].offset)
        return True

    async def _try(self, batch: _Batch) -> bool:
        try:
            await asyncio.to_thread(self._store.append, batch.publications, batch.forgotten, batch.floor)
        except StorageError as error:
            log.warning("the disk refuses, nothing is said until it does not", error=str(error))
            self.refused = True
            return False
        self.refused = False
        return True

    def _count(self, publications: int, size: int) -> None:
        self._unstored += publications
        self._unstored_bytes += size
        if self._unstored >= self._most or self._unstored_bytes >= self._most_bytes:
            self._room.clear()
        else:
            self._room.set()


_encode = msgspec.json.Encoder().encode

"""Keeping what the core wants kept: batch after batch, in a thread, and never giving up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tocsin.coordinator.actions import StoreBatch as Batch
from tocsin.coordinator.store import CoordinatorStore
from tocsin.coordinator.store.merging import MergedChanges
from tocsin.coordinator.store.records import Change
from tocsin.errors import BusyError, StorageError
from tocsin.log import get_logger

log = get_logger(__name__)

_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 2.0


class BatchWriter:
    """Writes batches in order. What has come while one was being written is written together, later changes in place
    of earlier ones.

    What can go wrong: the store refuses. It is told again, for ever, since nothing may be said before it is stored;
    when the server stops, once more. Any other error of the store ends :meth:`run`. ``refused`` is whether it does now.
    """

    def __init__(self, store: CoordinatorStore, stored: Callable[[int], None]) -> None:
        self._store, self._stored = store, stored
        self._waiting, self._last = MergedChanges(), 0
        self._something = asyncio.Event()
        self._ending = asyncio.Event()
        self.refused = False

    def add(self, batch: Batch) -> None:
        """One more to be kept."""
        self._waiting.add(batch.changes)
        self._last = batch.batch
        self._something.set()

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
        wait = _FIRST_WAIT
        tried, last = self._waiting, self._last
        self._waiting = MergedChanges()
        while not await self._try_to_write(tried.changes()):
            if self._ending.is_set():
                return False
            await self._pause(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
            tried.add(self._waiting.changes())
            last, self._waiting = self._last, MergedChanges()
        self._stored(last)
        return True

    async def _try_to_write(self, changes: list[Change]) -> bool:
        try:
            await asyncio.to_thread(self._store.write, changes)
        except (StorageError, BusyError) as error:
            log.warning("the store refuses, nothing is said until it does not", changes=len(changes), error=str(error))
            self.refused = True
            return False
        self.refused = False
        return True

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

"""Storing what must be stored before anybody is told of it: batch after batch, in a thread, and never giving up."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Final, Generic, TypeVar

from tocsin.errors import BusyError, StorageError
from tocsin.log import get_logger

log = get_logger(__name__)

B = TypeVar("B")

FIRST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 2.0


class StorageWriter(ABC, Generic[B]):
    """Writes batches in order; what comes while one is being written waits for the next.

    What can go wrong: the store refuses. It is told again, for ever, since nothing may be said before it is stored;
    when the server stops, once more. Any other error of the store ends :meth:`run`. ``refused`` is whether it does now.
    """

    def __init__(self) -> None:
        self._something, self._ending = asyncio.Event(), asyncio.Event()
        self.refused = False

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether there is anything to write."""

    @abstractmethod
    def take(self, refused: B | None) -> B:
        """What to write next, which no longer waits: it has, or is, what was just ``refused``."""

    @abstractmethod
    def write(self, batch: B) -> None:
        """Stores it; called in a thread."""

    @abstractmethod
    def written(self, batch: B) -> None:
        """It is stored."""

    def wake(self) -> None:
        """Something waits."""
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
            if self.waits and not await self._write():
                return
            if self._ending.is_set() and not self.waits:
                return

    async def _write(self) -> bool:
        """Writes all that waits; False when the store refuses and the server stops."""
        wait, batch = FIRST_WAIT, self.take(None)
        while not await self._try(batch):
            if self._ending.is_set():
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._ending.wait()
            wait = min(wait * 2, LONGEST_WAIT)
            batch = self.take(batch)
        self.written(batch)
        return True

    async def _try(self, batch: B) -> bool:
        try:
            await asyncio.to_thread(self.write, batch)
        except (StorageError, BusyError) as error:
            log.warning("the store refuses, nothing is said until it does not", error=str(error))
            self.refused = True
            return False
        self.refused = False
        return True

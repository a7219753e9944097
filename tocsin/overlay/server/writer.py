"""Storing what a head wants stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tocsin.overlay.messages import Routed
from tocsin.overlay.server.store import ReplayStore
from tocsin.writer import StorageWriter


class LogWriter(StorageWriter[list[Routed]]):
    """Writes publications in order; those that come while some are being written are written together.

    ``most`` may wait: publishers are not read while more do.
    """

    def __init__(self, store: ReplayStore, most: int, stored: Callable[[int], None]) -> None:
        super().__init__()
        self._store, self._most, self._stored = store, most, stored
        self._waiting: list[Routed] = []
        self._room = asyncio.Event()
        self._room.set()

    @property
    def waits(self) -> bool:
        """Whether any publication is not being written yet."""
        return bool(self._waiting)

    def add(self, publication: Routed) -> None:
        """One more to be stored."""
        self._waiting.append(publication)
        self.wake()
        if len(self._waiting) >= self._most:
            self._room.clear()

    async def room(self) -> None:
        """Returns when not too many wait."""
        await self._room.wait()

    def take(self, refused: list[Routed] | None) -> list[Routed]:
        """All that wait; while some are refused just these, so that no more than so many can wait meanwhile."""
        if refused:
            return refused
        batch, self._waiting = self._waiting, []
        self._room.set()
        return batch

    def write(self, batch: list[Routed]) -> None:
        """Into the log."""
        self._store.append(batch)

    def written(self, batch: list[Routed]) -> None:
        """The core is told up to where."""
        self._stored(batch[-1].offset)

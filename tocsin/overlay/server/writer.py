"""Storing what a head wants stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tocsin.overlay.messages import Routed
from tocsin.overlay.server.store import ReplayStore
from tocsin.writer import StorageWriter

_encode = msgspec.json.Encoder().encode


class _Batch(NamedTuple):
    """What is written at once: first of all, which publishers are forgotten."""

    publications: list[Routed]
    size: int
    forgotten: list[str]
    floor: int


class LogWriter(StorageWriter[_Batch]):
    """Writes publications in order; those that come while some are being written are written together.

    ``most`` may be unstored, and ``most_bytes`` of them, with those that are being written: publishers are not heard
    while there are more.
    """

    def __init__(self, store: ReplayStore, most: int, most_bytes: int, stored: Callable[[int], None]) -> None:
        super().__init__()
        self._store, self._most, self._most_bytes, self._stored = store, most, most_bytes, stored
        self._waiting: list[Routed] = []
        self._forgotten: list[str] = []
        self._floor = 0
        # Of those that wait, and of all that is not stored.
        self._waiting_bytes = self._unstored_bytes = self._unstored = 0
        self._room = asyncio.Event()
        self._room.set()

    @property
    def waits(self) -> bool:
        """Whether anything is not being written yet."""
        return bool(self._waiting or self._forgotten)

    def add(self, publication: Routed) -> None:
        """One more to be stored."""
        size = len(_encode(publication))
        self._waiting.append(publication)
        self._waiting_bytes += size
        self.wake()
        self._count(1, size)

    def forget(self, names: list[str], floor: int) -> None:
        """These publishers are to be known no more."""
        self._forgotten += names
        self._floor = floor
        self.wake()

    async def room(self) -> None:
        """Returns when not too much is unstored; whoever adds something then does so at once."""
        while not self._room.is_set():
            await self._room.wait()

    def take(self, refused: _Batch | None) -> _Batch:
        """All that wait; while some are refused just these, so that no more than so many can wait meanwhile."""
        if refused:
            return refused
        batch = _Batch(self._waiting, self._waiting_bytes, self._forgotten, self._floor)
        self._waiting, self._waiting_bytes, self._forgotten = [], 0, []
        return batch

    def write(self, batch: _Batch) -> None:
        """Into the log."""
        self._store.append(batch.publications, batch.forgotten, batch.floor)

    def written(self, batch: _Batch) -> None:
        """The core is told up to where."""
        if batch.publications:
            self._count(-len(batch.publications), -batch.size)
            self._stored(batch.publications[-1].offset)

    def _count(self, publications: int, size: int) -> None:
        self._unstored += publications
        self._unstored_bytes += size
        if self._unstored >= self._most or self._unstored_bytes >= self._most_bytes:
            self._room.clear()
        else:
            self._room.set()

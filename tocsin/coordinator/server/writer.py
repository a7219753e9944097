"""Keeping what the core wants kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tocsin.coordinator.actions import StoreBatch as Batch
from tocsin.coordinator.store import CoordinatorStore
from tocsin.coordinator.store.merging import MergedChanges
from tocsin.writer import StorageWriter


class _Merged(NamedTuple):
    """The changes of all batches up to the ``last``, since those that were stored."""

    changes: MergedChanges
    last: int


class BatchWriter(StorageWriter[_Merged]):
    """Writes batches in order. What has come while one was being written, or refused, is written together, later
    changes in place of earlier ones."""

    def __init__(self, store: CoordinatorStore, stored: Callable[[int], None]) -> None:
        super().__init__()
        self._store, self._stored = store, stored
        self._waiting, self._last = MergedChanges(), 0

    @property
    def waits(self) -> bool:
        """Whether any change is not stored."""
        return bool(self._waiting)

    def add(self, batch: Batch) -> None:
        """One more to be kept."""
        self._waiting.add(batch.changes)
        self._last = batch.batch
        self.wake()

    def take(self, refused: _Merged | None) -> _Merged:
        """All changes that are not stored."""
        changes, self._waiting = self._waiting, MergedChanges()
        if refused:
            refused.changes.add(changes.changes())
            changes = refused.changes
        return _Merged(changes, self._last)

    def write(self, batch: _Merged) -> None:
        """In one transaction."""
        self._store.write(batch.changes.changes())

    def written(self, batch: _Merged) -> None:
        """The core is told."""
        self._stored(batch.last)

"""What the coordinator must not forget: brokers, who is where, subscriptions with their cursors, and its key.

A store takes batches of changes, each as a whole, and gives everything back at the start. What ``write`` has returned
from would outlive a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tocsin.coordinator.store.records import Change, State


class Store(Protocol):
    """Where the state is kept.

    What can go wrong: the disk refuses or another process holds the file. Then ``write`` raises
    :class:`StorageError` or :class:`BusyError`, nothing of the batch was kept, and the same batch may be tried again.
    """

    def read(self) -> State:
        """All that is kept."""

    def write(self, changes: Sequence[Change]) -> None:
        """Keeps a batch: all of it, durably, or nothing."""

    def close(self) -> None:
        """Lets go of what it holds open."""

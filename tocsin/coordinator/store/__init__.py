"""What the coordinator must not forget: brokers, who is where, subscriptions with their cursors, and its keys.

A store takes batches of changes, each as a whole, and gives everything back at the start. What ``write`` has returned
from would outlive a crash. ``opening`` gives the store that the settings name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.store.records import Change, StoredState


class CoordinatorStore(Protocol):
    """Where the state is kept.

    What can go wrong: the disk or the database refuses, or another process holds it. Then ``write`` raises
    :class:`StorageError` or :class:`BusyError`, nothing of the batch was kept that would be in the way, and the same
    batch may be tried again. With :class:`ConflictError` another coordinator has taken over: this one must end.
    """

    def claim(self) -> None:
        """Makes this the only coordinator on the store; if there is another, it is a ConflictError."""

    def keyring(self) -> Keyring:
        """What tokens are signed with, and which are not taken. Anybody may ask, whoever has claimed the store."""

    def amend(self, change: Callable[[Keyring], Keyring], *registered: str) -> None:
        """Changes the keyring and registers subscribers, at once and durably, whoever has claimed the store.

        A name that was removed is another person's from then on."""

    def registration(self, subscriber: str) -> int:
        """Which registration of this name is the present one; a name that nobody has had has its first, 0, to come."""

    def unplaced_subscribers(self) -> list[tuple[str, int]]:
        """Who is registered, as which of that name, and has no broker."""

    def read(self) -> StoredState:
        """All that is kept."""

    def write(self, changes: Sequence[Change]) -> None:
        """Keeps a batch: all of it, durably, or nothing."""

    def close(self) -> None:
        """Lets go of what it holds open."""

"""A store that lives as long as its process: for simulations and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.store.records import (
    Assignment,
    BrokerRecord,
    Change,
    DropAssignment,
    DropBroker,
    DropHeld,
    PutAssignment,
    PutBroker,
    PutCursors,
    PutHeld,
    SetBalancing,
    StoredState,
    further,
)
from tocsin.model.histories import Cursor
from tocsin.model.subscriber import Held


class MemoryStore:
    """Keeps what it is told, and never refuses."""

    def __init__(self, keyring: Keyring | None = None) -> None:
        self._keyring, self._balancing = keyring or Keyring.new(), True
        self._brokers: dict[str, BrokerRecord] = {}
        self._assignments: dict[str, Assignment] = {}
        self._held: dict[str, dict[int, Held]] = {}

    def claim(self) -> None:
        """There is nobody else."""

    def keyring(self) -> Keyring:
        """What tokens are signed with, and which are not taken."""
        return self._keyring

    def amend(self, change: Callable[[Keyring], Keyring], *registered: str) -> None:
        """Changes the keyring and registers subscribers."""
        keyring = change(self._keyring)
        self._keyring = replace(keyring, names=keyring.names + len(registered))
        for name in registered:
            self._register(name)

    def registration(self, subscriber: str) -> int:
        """Which registration of this name is the present one."""
        return self._assignments.get(subscriber, Assignment(subscriber)).registration

    def unplaced_subscribers(self) -> list[tuple[str, int]]:
        """Who is registered, as which of that name, and has no broker."""
        waiting = [
            assignment for assignment in self._assignments.values() if assignment.broker is None and not assignment.gone
        ]
        return [(assignment.subscriber, assignment.registration) for assignment in waiting]

    def read(self) -> StoredState:
        """All that is kept, as a copy."""
        held = {name: dict(each) for name, each in self._held.items() if each}
        return StoredState(
            self._keyring, list(self._brokers.values()), list(self._assignments.values()), held, self._balancing
        )

    def write(self, changes: Sequence[Change]) -> None:
        """Keeps a batch."""
        for change in changes:
            self._write(change)

    def close(self) -> None:
        """Nothing is held open."""

    def _write(self, change: Change) -> None:
        match change:
            case PutHeld(subscriber, held):
                self._hold(subscriber, held)
            case PutAssignment(assignment):
                self._assignments[assignment.subscriber] = assignment
            case PutCursors(subscriber, cursors):
                self._advance(subscriber, cursors)
            case DropHeld(subscriber, subscription):
                self._held.get(subscriber, {}).pop(subscription, None)
            case DropAssignment(subscriber):
                self._assignments.pop(subscriber, None)
            case PutBroker(broker):
                self._brokers[broker.name] = broker
            case DropBroker(name):
                self._brokers.pop(name, None)
                self._keyring = self._keyring.without_name(name)
            case SetBalancing(on):
                self._balancing = on

    def _register(self, name: str) -> None:
        before = self._assignments.get(name)
        if before is None:
            self._assignments[name] = Assignment(name)
        elif before.gone:
            self._assignments[name] = Assignment(name, coming=before.coming, registration=before.registration + 1)

    def _hold(self, subscriber: str, held: Held) -> None:
        mine = self._held.setdefault(subscriber, {})
        mine[held.subscription] = further(mine.get(held.subscription), held)

    def _advance(self, subscriber: str, cursors: dict[int, Cursor]) -> None:
        mine = self._held.get(subscriber, {})
        for subscription in cursors.keys() & mine.keys():
            held, cursor = mine[subscription], cursors[subscription]
            said = replace(held, cursor=cursor.execution, incarnation=cursor.incarnation)
            mine[subscription] = further(held, said)

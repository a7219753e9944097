"""Changes that wait for the store, with those left out that later ones make needless."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.coordinator.store.records import (
    Change,
    DropAssignment,
    DropBroker,
    DropHeld,
    PutAssignment,
    PutBroker,
    PutCursors,
    PutHeld,
    SetBalancing,
    further,
)
from tocsin.model.histories import Cursor

Key = tuple[type[Change], str, int]


class MergedChanges:
    """Changes in an order in which they come to the same as in the one they were made.

    However often an assignment or a cursor changes while the store is away, it is there once: all that waits is no more
    than there are brokers, subscribers and subscriptions.
    """

    def __init__(self) -> None:
        self._changes: dict[Key, Change] = {}
        self._cursors: dict[str, dict[int, Cursor]] = {}

    def __len__(self) -> int:
        return len(self._changes) + len(self._cursors)

    def add(self, changes: Iterable[Change]) -> None:
        """These come after all before them."""
        for change in changes:
            self._add(change)

    def changes(self) -> list[Change]:
        """All of them; cursors come last, since those of what was given up since are no longer among them."""
        return [*self._changes.values(), *(PutCursors(name, cursors) for name, cursors in self._cursors.items())]

    def _add(self, change: Change) -> None:
        match change:
            case PutBroker(broker):
                self._put((PutBroker, broker.name, 0), change)
            case DropBroker(name):
                self._changes.pop((PutBroker, name, 0), None)
                self._put((DropBroker, name, 0), change)
            case PutAssignment(assignment):
                self._put((PutAssignment, assignment.subscriber, 0), change)
            case DropAssignment(subscriber):
                self._changes.pop((PutAssignment, subscriber, 0), None)
                self._put((DropAssignment, subscriber, 0), change)
            case PutHeld():
                self._hold(change)
            case DropHeld(subscriber, subscription):
                self._drop(subscriber, subscription)
                self._put((DropHeld, subscriber, subscription), change)
            case PutCursors(subscriber, cursors):
                self._cursors.setdefault(subscriber, {}).update(cursors)
            case SetBalancing():
                self._put((SetBalancing, "", 0), change)

    def _put(self, key: Key, change: Change) -> None:
        self._changes.pop(key, None)
        self._changes[key] = change

    def _hold(self, change: PutHeld) -> None:
        """The further cursor counts, as in the store. One of another incarnation that was told before does not."""
        key = (PutHeld, change.subscriber, change.held.subscription)
        before = self._changes.get(key)
        if isinstance(before, PutHeld):
            change = PutHeld(change.subscriber, further(before.held, change.held))
        cursor = self._cursors.get(change.subscriber, {}).get(change.held.subscription)
        if cursor is not None and cursor.incarnation != change.held.incarnation:
            self._drop_cursor(change.subscriber, change.held.subscription)
        self._put(key, change)

    def _drop(self, subscriber: str, subscription: int) -> None:
        """What was said of a subscription before it was given up no longer matters."""
        self._changes.pop((PutHeld, subscriber, subscription), None)
        self._drop_cursor(subscriber, subscription)

    def _drop_cursor(self, subscriber: str, subscription: int) -> None:
        cursors = self._cursors.get(subscriber, {})
        cursors.pop(subscription, None)
        if not cursors:
            self._cursors.pop(subscriber, None)

"""The records of the store, and the changes it is told."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tocsin.coordinator.keyring import Keyring
from tocsin.model.histories import Cursor
from tocsin.model.subscriber import Held


class BrokerRecord(msgspec.Struct, frozen=True):
    """A broker that has come at least once. A draining one must end empty, and gets nobody."""

    name: str
    url: str
    capacity: float = 1.0
    location: tuple[float, float] | None = None
    draining: bool = False


class Assignment(msgspec.Struct, frozen=True):
    """Where a subscriber is, and where it is going.

    Args:
        broker: who serves it; None: it was never placed.
        stay: the number of this stay.
        destination: where it is being moved; None: nowhere.
        coming: the highest number ever given to a stay of this subscriber; that of the move, if there is one.
        seen: when it was last known to be there, to the hour.
        registration: which registration of its name this is: one that follows a removal is another person's.
        gone: it was removed, which is remembered until this time, since tokens and brokers may still tell of it; 0: it
            was not.
    """

    subscriber: str
    broker: str | None = None
    stay: int = 0
    destination: str | None = None
    coming: int = 0
    seen: float = 0.0
    registration: int = 0
    gone: float = 0.0


class PutBroker(msgspec.Struct, frozen=True):
    """A broker is new, or its record has changed."""

    broker: BrokerRecord


class DropBroker(msgspec.Struct, frozen=True):
    """A broker was removed, and no token of its name is taken that was signed so far."""

    broker: str


class PutAssignment(msgspec.Struct, frozen=True):
    """A subscriber is new, or its assignment has changed."""

    assignment: Assignment


class DropAssignment(msgspec.Struct, frozen=True):
    """That a subscriber was removed need not be remembered any more."""

    subscriber: str


class PutHeld(msgspec.Struct, frozen=True):
    """A subscriber holds a subscription. If it does already under the same incarnation, the further cursor counts."""

    subscriber: str
    held: Held


class DropHeld(msgspec.Struct, frozen=True):
    """A subscriber gave a subscription up."""

    subscriber: str
    subscription: int


class PutCursors(msgspec.Struct, frozen=True):
    """How far a subscriber is. Under one incarnation a cursor never goes back; that of what is not held is left out."""

    subscriber: str
    cursors: dict[int, Cursor]


class SetBalancing(msgspec.Struct, frozen=True):
    """Whether the loads are balanced without being asked."""

    on: bool


def further(before: Held | None, held: Held) -> Held:
    """What is held if it was held before: cursors go forward as long as they are counted under one incarnation."""
    if before is None or before.incarnation != held.incarnation or before.cursor < held.cursor:
        return held
    return replace(held, cursor=before.cursor)


Change = PutBroker | DropBroker | PutAssignment | DropAssignment | PutHeld | DropHeld | PutCursors | SetBalancing


class StoredState(msgspec.Struct):
    """All that is kept: ``keyring`` is what tokens are signed with, ``held`` is subscriber → subscription."""

    keyring: Keyring
    brokers: list[BrokerRecord] = []
    assignments: list[Assignment] = []
    held: dict[str, dict[int, Held]] = {}
    balancing: bool = True

"""What the stores in databases have alike: tables and statements in the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

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
)
from tocsin.model.subscriber import Held

SCHEMA: Final = 4
FACTS: Final = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
TABLES: Final = (
    "CREATE TABLE brokers (name TEXT PRIMARY KEY, url TEXT NOT NULL, capacity DOUBLE PRECISION NOT NULL,"
    " x DOUBLE PRECISION, y DOUBLE PRECISION, draining BIGINT NOT NULL)",
    "CREATE TABLE places (subscriber TEXT PRIMARY KEY, broker TEXT, stay BIGINT NOT NULL, destination TEXT,"
    " coming BIGINT NOT NULL, seen DOUBLE PRECISION NOT NULL DEFAULT 0, registration BIGINT NOT NULL DEFAULT 0,"
    " gone DOUBLE PRECISION NOT NULL DEFAULT 0)",
    "CREATE TABLE held (subscriber TEXT NOT NULL, subscription BIGINT NOT NULL, channel TEXT NOT NULL,"
    " parameters TEXT NOT NULL, cursor BIGINT NOT NULL, live BIGINT NOT NULL,"
    " incarnation TEXT NOT NULL DEFAULT '', PRIMARY KEY (subscriber, subscription))",
)
KEYS: Final = 3
"""Before this schema one key signed and verified alike, and every broker knew it: what it signed is not taken."""
MIGRATIONS: Final = {
    2: ("ALTER TABLE held ADD COLUMN incarnation TEXT NOT NULL DEFAULT ''",),
    KEYS: ("DELETE FROM facts WHERE name = 'key'",),
    4: (
        "ALTER TABLE places ADD COLUMN seen DOUBLE PRECISION NOT NULL DEFAULT 0",
        "ALTER TABLE places ADD COLUMN registration BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE places ADD COLUMN gone DOUBLE PRECISION NOT NULL DEFAULT 0",
    ),
}
"""What brings tables to each schema from the one before it."""
READ_FACTS: Final = "SELECT name, value FROM facts"
READ_KEYRING: Final = "SELECT value FROM facts WHERE name = 'keyring'"
READ_UNPLACED: Final = "SELECT subscriber, registration FROM places WHERE broker IS NULL AND gone = 0"
READ_REGISTRATION: Final = "SELECT registration FROM places WHERE subscriber = ?"
REGISTER: Final = (
    "INSERT INTO places (subscriber, stay, coming) VALUES (?, 0, 0) ON CONFLICT (subscriber) DO UPDATE SET"
    " gone = 0, seen = 0, registration = places.registration + 1 WHERE places.gone > 0"
)
READ_BROKERS: Final = "SELECT name, url, capacity, x, y, draining FROM brokers"
READ_ASSIGNMENTS: Final = "SELECT subscriber, broker, stay, destination, coming, seen, registration, gone FROM places"
READ_HELD: Final = "SELECT subscriber, subscription, channel, parameters, cursor, live, incarnation FROM held"
PUT_FACT: Final = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_PUT_BROKER: Final = (
    "INSERT INTO brokers VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET url = excluded.url,"
    " capacity = excluded.capacity, x = excluded.x, y = excluded.y, draining = excluded.draining"
)
_DROP_BROKER: Final = "DELETE FROM brokers WHERE name = ?"
_PUT_ASSIGNMENT: Final = (
    "INSERT INTO places (subscriber, broker, stay, destination, coming, seen, registration, gone)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (subscriber) DO UPDATE SET broker = excluded.broker,"
    " stay = excluded.stay, destination = excluded.destination, coming = excluded.coming, seen = excluded.seen,"
    " registration = excluded.registration, gone = excluded.gone"
)
_DROP_ASSIGNMENT: Final = "DELETE FROM places WHERE subscriber = ?"
_PUT_HELD: Final = (
    "INSERT INTO held (subscriber, subscription, channel, parameters, cursor, live, incarnation)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (subscriber, subscription) DO UPDATE SET"
    " channel = excluded.channel, parameters = excluded.parameters, live = excluded.live,"
    " cursor = CASE WHEN held.incarnation = excluded.incarnation AND held.cursor > excluded.cursor"
    " THEN held.cursor ELSE excluded.cursor END, incarnation = excluded.incarnation"
)
_DROP_HELD: Final = "DELETE FROM held WHERE subscriber = ? AND subscription = ?"
_PUT_CURSOR: Final = (
    "UPDATE held SET cursor = ?, incarnation = ? WHERE subscriber = ? AND subscription = ?"
    " AND (cursor < ? OR incarnation <> ?)"
)

Row = tuple[Any, ...]


def first_facts() -> list[Row]:
    """What a new store knows: a key of its own, and that it balances."""
    return [encode_keyring(Keyring.new()), ("balancing", "on")]


def steps(schema: int) -> Iterator[tuple[str, Row]]:
    """What brings a store of an older schema to the present one."""
    for number in range(schema + 1, SCHEMA + 1):
        for statement in MIGRATIONS.get(number, ()):
            yield statement, ()
    if schema < KEYS:
        yield PUT_FACT, encode_keyring(Keyring.new())


def encode_keyring(keyring: Keyring) -> Row:
    """A keyring as a fact."""
    return "keyring", msgspec.json.encode(keyring).decode()


def decode_keyring(row: Row | None) -> Keyring:
    """The keyring that was written so."""
    return msgspec.json.decode(row[0] if row else "", type=Keyring)


def amendment(before: Keyring, change: Callable[[Keyring], Keyring], names: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """A change of the keyring and new names, as statements."""
    keyring = change(before)
    yield PUT_FACT, encode_keyring(msgspec.structs.replace(keyring, names=keyring.names + len(names)))
    for name in names:
        yield REGISTER, (name,)


def registration(row: Row | None) -> int:
    """Which registration of a name is the present one; 0 for a name that nobody has had."""
    return int(row[0]) if row else 0


def read_unplaced(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """Who has no broker, as which of that name."""
    return [(str(name), int(number)) for name, number in rows]


def dismissals(keyring: Callable[[], Keyring], changes: Sequence[Change]) -> Iterator[tuple[str, Row]]:
    """Makes tokens worthless that were signed for brokers which these changes remove, as statements."""
    names = [change.broker for change in changes if isinstance(change, DropBroker)]
    if names:
        yield PUT_FACT, encode_keyring(reduce(Keyring.without_name, names, keyring()))


def statements(change: Change) -> Iterator[tuple[str, Row]]:
    """A change as statements with their values."""
    match change:
        case PutBroker(broker):
            x, y = broker.location or (None, None)
            yield _PUT_BROKER, (broker.name, broker.url, broker.capacity, x, y, int(broker.draining))
        case DropBroker(name):
            yield _DROP_BROKER, (name,)
        case PutAssignment(assignment):
            yield _PUT_ASSIGNMENT, astuple(assignment)
        case DropAssignment(subscriber):
            yield _DROP_ASSIGNMENT, (subscriber,)
        case PutHeld(subscriber, held):
            parameters = msgspec.json.encode(held.parameters).decode()
            row = (subscriber, held.subscription, held.channel, parameters, held.cursor, int(held.live))
            yield _PUT_HELD, (*row, held.incarnation)
        case DropHeld(subscriber, subscription):
            yield _DROP_HELD, (subscriber, subscription)
        case PutCursors(subscriber, cursors):
            for subscription, (execution, incarnation) in ((key, astuple(each)) for key, each in cursors.items()):
                yield _PUT_CURSOR, (execution, incarnation, subscriber, subscription, execution, incarnation)
        case SetBalancing(on):
            yield PUT_FACT, ("balancing", "on" if on else "off")


def state(
    facts: Iterable[tuple[str, str]], brokers: Iterable[Row], assignments: Iterable[Row], held: Iterable[Row]
) -> StoredState:
    """All that is kept, from the rows of the four tables."""
    known: dict[str, str] = dict(facts)
    return StoredState(
        decode_keyring((known["keyring"],)),
        [_broker(*row) for row in brokers],
        [Assignment(*row) for row in assignments],
        _read_held(held),
        known["balancing"] == "on",
    )


def _read_held(rows: Iterable[Row]) -> dict[str, dict[int, Held]]:
    held: dict[str, dict[int, Held]] = {}
    for subscriber, subscription, channel, parameters, cursor, live, incarnation in rows:
        one = Held(subscription, channel, msgspec.json.decode(parameters), cursor, bool(live), incarnation)
        held.setdefault(subscriber, {})[subscription] = one
    return held


def _broker(name: str, url: str, capacity: float, x: float | None, y: float | None, draining: int) -> BrokerRecord:
    location = None if x is None or y is None else (x, y)
    return BrokerRecord(name, url, capacity, location, bool(draining))

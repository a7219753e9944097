"""What the stores in databases have alike: tables and statements in the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from secrets import token_hex
from typing import Any, Final

import msgspec

from tocsin.coordinator.store.records import (
    Broker,
    Change,
    DropHeld,
    Place,
    PutBroker,
    PutCursors,
    PutHeld,
    PutPlace,
    SetBalancing,
    State,
)
from tocsin.model.subscriber import Held

SCHEMA: Final = 1
TABLES: Final = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE brokers (name TEXT PRIMARY KEY, url TEXT NOT NULL, capacity DOUBLE PRECISION NOT NULL,"
    " x DOUBLE PRECISION, y DOUBLE PRECISION, draining BIGINT NOT NULL)",
    "CREATE TABLE places (subscriber TEXT PRIMARY KEY, broker TEXT, stay BIGINT NOT NULL, destination TEXT,"
    " coming BIGINT NOT NULL)",
    "CREATE TABLE held (subscriber TEXT NOT NULL, subscription BIGINT NOT NULL, channel TEXT NOT NULL,"
    " parameters TEXT NOT NULL, cursor BIGINT NOT NULL, live BIGINT NOT NULL,"
    " PRIMARY KEY (subscriber, subscription))",
)
READ_FACTS: Final = "SELECT name, value FROM facts"
READ_BROKERS: Final = "SELECT name, url, capacity, x, y, draining FROM brokers"
READ_PLACES: Final = "SELECT subscriber, broker, stay, destination, coming FROM places"
READ_HELD: Final = "SELECT subscriber, subscription, channel, parameters, cursor, live FROM held"
PUT_FACT: Final = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_PUT_BROKER: Final = (
    "INSERT INTO brokers VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET url = excluded.url,"
    " capacity = excluded.capacity, x = excluded.x, y = excluded.y, draining = excluded.draining"
)
_PUT_PLACE: Final = (
    "INSERT INTO places VALUES (?, ?, ?, ?, ?) ON CONFLICT (subscriber) DO UPDATE SET broker = excluded.broker,"
    " stay = excluded.stay, destination = excluded.destination, coming = excluded.coming"
)
_PUT_HELD: Final = (
    "INSERT INTO held VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (subscriber, subscription) DO UPDATE SET"
    " channel = excluded.channel, parameters = excluded.parameters, live = excluded.live,"
    " cursor = CASE WHEN held.cursor > excluded.cursor THEN held.cursor ELSE excluded.cursor END"
)
_DROP_HELD: Final = "DELETE FROM held WHERE subscriber = ? AND subscription = ?"
_PUT_CURSOR: Final = "UPDATE held SET cursor = ? WHERE subscriber = ? AND subscription = ? AND cursor < ?"

Row = tuple[Any, ...]


def first_facts() -> list[Row]:
    """What a new store knows: a key of its own, and that it balances."""
    return [("key", token_hex(32)), ("balancing", "on")]


def statements(change: Change) -> Iterator[tuple[str, Row]]:
    """A change as statements with their values."""
    match change:
        case PutBroker(broker):
            x, y = broker.place or (None, None)
            yield _PUT_BROKER, (broker.name, broker.url, broker.capacity, x, y, int(broker.draining))
        case PutPlace(place):
            yield _PUT_PLACE, msgspec.structs.astuple(place)
        case PutHeld(subscriber, held):
            parameters = msgspec.json.encode(held.parameters).decode()
            yield _PUT_HELD, (subscriber, held.subscription, held.channel, parameters, held.cursor, int(held.live))
        case DropHeld(subscriber, subscription):
            yield _DROP_HELD, (subscriber, subscription)
        case PutCursors(subscriber, cursors):
            for subscription, cursor in cursors.items():
                yield _PUT_CURSOR, (cursor, subscriber, subscription, cursor)
        case SetBalancing(on):
            yield PUT_FACT, ("balancing", "on" if on else "off")


def state(
    facts: Iterable[tuple[str, str]], brokers: Iterable[Row], places: Iterable[Row], held: Iterable[Row]
) -> State:
    """All that is kept, from the rows of the four tables."""
    known: dict[str, str] = dict(facts)
    return State(
        known["key"],
        [_broker(*row) for row in brokers],
        [Place(*row) for row in places],
        _held(held),
        known["balancing"] == "on",
    )


def _held(rows: Iterable[Row]) -> dict[str, dict[int, Held]]:
    held: dict[str, dict[int, Held]] = {}
    for subscriber, subscription, channel, parameters, cursor, live in rows:
        one = Held(subscription, channel, msgspec.json.decode(parameters), cursor, bool(live))
        held.setdefault(subscriber, {})[subscription] = one
    return held


def _broker(name: str, url: str, capacity: float, x: float | None, y: float | None, draining: int) -> Broker:
    place = None if x is None or y is None else (x, y)
    return Broker(name, url, capacity, place, bool(draining))

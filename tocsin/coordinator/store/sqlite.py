"""The store in one SQLite file, in WAL mode."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

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
from tocsin.errors import BusyError, StorageError
from tocsin.model.subscriber import Held

_SCHEMA: Final = 1
_TABLES: Final = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE brokers (name TEXT PRIMARY KEY, url TEXT NOT NULL, capacity REAL NOT NULL, x REAL, y REAL,"
    " draining INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE places (subscriber TEXT PRIMARY KEY, broker TEXT, stay INTEGER NOT NULL, destination TEXT,"
    " coming INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE held (subscriber TEXT NOT NULL, subscription INTEGER NOT NULL, channel TEXT NOT NULL,"
    " parameters TEXT NOT NULL, cursor INTEGER NOT NULL, live INTEGER NOT NULL,"
    " PRIMARY KEY (subscriber, subscription)) WITHOUT ROWID",
)
_PUT_BROKER: Final = "INSERT OR REPLACE INTO brokers VALUES (?, ?, ?, ?, ?, ?)"
_PUT_PLACE: Final = "INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?, ?)"
_PUT_HELD: Final = (
    "INSERT INTO held VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET channel = excluded.channel,"
    " parameters = excluded.parameters, cursor = max(cursor, excluded.cursor), live = excluded.live"
)
_DROP_HELD: Final = "DELETE FROM held WHERE subscriber = ? AND subscription = ?"
_PUT_CURSOR: Final = "UPDATE held SET cursor = max(cursor, ?) WHERE subscriber = ? AND subscription = ?"
_PUT_FACT: Final = "INSERT OR REPLACE INTO facts VALUES (?, ?)"


class SqliteStore:
    """The state in ``file``, created when missing. It may be used from any thread, one at a time.

    What can go wrong: the file cannot be opened or written, or is none of ours (:class:`StorageError`), or another
    process is writing (:class:`BusyError`). Nothing of the batch was kept then.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        with self._explained():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._found()
            except BaseException:
                self._connection.close()
                raise

    def read(self) -> State:
        """All that is kept."""
        with self._explained():
            facts = dict(self._connection.execute("SELECT name, value FROM facts"))
            return State(
                facts["key"],
                [_broker(*row) for row in self._connection.execute("SELECT * FROM brokers")],
                [Place(*row) for row in self._connection.execute("SELECT * FROM places")],
                self._held(),
                facts["balancing"] == "on",
            )

    def write(self, changes: Sequence[Change]) -> None:
        """Keeps a batch: all of it, on disk, or nothing."""
        with self._changing():
            for change in changes:
                self._write(change)

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()

    def _held(self) -> dict[str, dict[int, Held]]:
        held: dict[str, dict[int, Held]] = {}
        for subscriber, subscription, channel, parameters, cursor, live in self._connection.execute(
            "SELECT * FROM held"
        ):
            one = Held(subscription, channel, msgspec.json.decode(parameters), cursor, bool(live))
            held.setdefault(subscriber, {})[subscription] = one
        return held

    def _write(self, change: Change) -> None:
        run = self._connection.execute
        match change:
            case PutBroker(broker):
                x, y = broker.place or (None, None)
                run(_PUT_BROKER, (broker.name, broker.url, broker.capacity, x, y, broker.draining))
            case PutPlace(place):
                run(_PUT_PLACE, msgspec.structs.astuple(place))
            case PutHeld(subscriber, held):
                parameters = msgspec.json.encode(held.parameters).decode()
                run(_PUT_HELD, (subscriber, held.subscription, held.channel, parameters, held.cursor, held.live))
            case DropHeld(subscriber, subscription):
                run(_DROP_HELD, (subscriber, subscription))
            case PutCursors(subscriber, cursors):
                rows = [(cursor, subscriber, subscription) for subscription, cursor in cursors.items()]
                self._connection.executemany(_PUT_CURSOR, rows)
            case SetBalancing(on):
                run(_PUT_FACT, ("balancing", "on" if on else "off"))

    def _found(self) -> None:
        """Makes the tables of a new file, and refuses one of a newer version."""
        with self._changing():
            (schema,) = self._connection.execute("PRAGMA user_version").fetchone()
            if schema > _SCHEMA:
                raise StorageError(f"{self._file} has schema {schema}, which a newer version of Tocsin wrote: use that")
            if schema == 0:
                for table in _TABLES:
                    self._connection.execute(table)
                facts = [("key", token_hex(32)), ("balancing", "on")]
                self._connection.executemany(_PUT_FACT, facts)
                self._connection.execute(f"PRAGMA user_version = {_SCHEMA}")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # After some refusals SQLite has already rolled back, and says so with an error.
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError(f"another process is changing {self._file}: nothing was changed; try again") from error
            raise StorageError(f"{self._file}: {error}; nothing was changed; see to the disk and try again") from error
        except (sqlite3.DatabaseError, OSError) as error:
            raise StorageError(f"{self._file} cannot be used ({error}): put a backup in its place") from error


def _broker(name: str, url: str, capacity: float, x: float | None, y: float | None, draining: int) -> Broker:
    place = None if x is None or y is None else (x, y)
    return Broker(name, url, capacity, place, bool(draining))

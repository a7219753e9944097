"""The store in one SQLite file, in WAL mode."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tocsin.coordinator.store import sql
from tocsin.coordinator.store.records import Change, State
from tocsin.errors import BusyError, StorageError
from tocsin.lock import take_lock


class SqliteStore:
    """The state in ``file``, created when missing. It may be used from any thread, one at a time.

    What can go wrong: the file cannot be opened or written, or is none of ours (:class:`StorageError`), or another
    process is writing (:class:`BusyError`). Nothing of the batch was kept then. Another coordinator works on the file
    (:class:`ConflictError`): then this one must not.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock: int | None = None
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

    def claim(self) -> None:
        """Keeps other coordinators off, until this store is closed or its process ends."""
        with self._explained():
            self._lock = take_lock(self._file.with_name(f"{self._file.name}.lock"), "the coordinator's state")

    def key(self) -> str:
        """What tokens are signed with."""
        with self._explained():
            return str(dict(self._connection.execute(sql.READ_FACTS))["key"])

    def read(self) -> State:
        """All that is kept."""
        run = self._connection.execute
        with self._explained():
            return sql.state(run(sql.READ_FACTS), run(sql.READ_BROKERS), run(sql.READ_PLACES), run(sql.READ_HELD))

    def write(self, changes: Sequence[Change]) -> None:
        """Keeps a batch: all of it, on disk, or nothing."""
        with self._changing():
            for change in changes:
                for statement, row in sql.statements(change):
                    self._connection.execute(statement, row)

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _found(self) -> None:
        """Makes the tables of a new file, brings those of an old one up to date, and refuses one of a newer version."""
        with self._changing():
            (schema,) = self._connection.execute("PRAGMA user_version").fetchone()
            if schema > sql.SCHEMA:
                raise StorageError(f"{self._file} has schema {schema}, which a newer version of Tocsin wrote: use that")
            if schema == 0:
                for table in sql.TABLES:
                    self._connection.execute(f"{table} WITHOUT ROWID")
                self._connection.executemany(sql.PUT_FACT, sql.first_facts())
            else:
                for statement in sql.steps(schema):
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {sql.SCHEMA}")

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

"""The store in one SQLite file, in WAL mode."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.store import sql
from tocsin.coordinator.store.records import Change, StoredState
from tocsin.errors import BusyError, StorageError
from tocsin.lock import take_lock
from tocsin.private import make_private
from tocsin.sqlite import transaction


class SqliteStore:
    """The state in ``file``, created when missing. It may be used from any thread, one at a time.

    What can go wrong: the file cannot be opened or written, or is none of ours (:class:`StorageError`), or another
    process is writing (:class:`BusyError`). Nothing of the batch was kept then. Another coordinator works on the file
    (:class:`ConflictError`): then this one must not.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock: int | None = None
        # Transactions of several threads on one connection would be one.
        self._turn = RLock()
        with self._explain():
            make_private(file)
            self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._migrate()
            except BaseException:
                self._connection.close()
                raise

    def claim(self) -> None:
        """Keeps other coordinators off, until this store is closed or its process ends."""
        with self._explain():
            self._lock = take_lock(self._file.with_name(f"{self._file.name}.lock"), "the coordinator's state")

    def keyring(self) -> Keyring:
        """What tokens are signed with, and which are not taken."""
        with self._explain():
            return sql.decode_keyring(self._connection.execute(sql.READ_KEYRING).fetchone())

    def amend(self, change: Callable[[Keyring], Keyring], *registered: str) -> None:
        """Changes the keyring and registers subscribers: all of it, on disk, or nothing."""
        with self._changing():
            for statement, row in sql.amendment(self.keyring(), change, registered):
                self._connection.execute(statement, row)

    def registration(self, subscriber: str) -> int:
        """Which registration of this name is the present one."""
        with self._explain():
            return sql.registration(self._connection.execute(sql.READ_REGISTRATION, (subscriber,)).fetchone())

    def unplaced_subscribers(self) -> list[tuple[str, int]]:
        """Who is registered, as which of that name, and has no broker."""
        with self._explain():
            return sql.read_unplaced(self._connection.execute(sql.READ_UNPLACED))

    def read(self) -> StoredState:
        """All that is kept."""
        run = self._connection.execute
        with self._explain():
            return sql.state(run(sql.READ_FACTS), run(sql.READ_BROKERS), run(sql.READ_ASSIGNMENTS), run(sql.READ_HELD))

    def write(self, changes: Sequence[Change]) -> None:
        """Keeps a batch: all of it, on disk, or nothing."""
        with self._changing():
            for statement, row in sql.dismissals(self.keyring, changes):
                self._connection.execute(statement, row)
            for change in changes:
                for statement, row in sql.statements(change):
                    self._connection.execute(statement, row)

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _migrate(self) -> None:
        """Makes the tables of a new file, brings those of an old one up to date, and refuses one of a newer version."""
        with self._changing():
            (schema,) = self._connection.execute("PRAGMA user_version").fetchone()
            if schema > sql.SCHEMA:
                raise StorageError(f"{self._file} has schema {schema}, which a newer version of Tocsin wrote: use that")
            if schema == 0:
                for table in (sql.FACTS, *sql.TABLES):
                    self._connection.execute(f"{table} WITHOUT ROWID")
                self._connection.executemany(sql.PUT_FACT, sql.first_facts())
            else:
                for statement, row in sql.steps(schema):
                    self._connection.execute(statement, row)
            self._connection.execute(f"PRAGMA user_version = {sql.SCHEMA}")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._turn, self._explain(), transaction(self._connection):
            yield

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            with self._turn:
                yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError(f"another process is changing {self._file}: nothing was changed; try again") from error
            raise StorageError(f"{self._file}: {error}; nothing was changed; see to the disk and try again") from error
        except sqlite3.DatabaseError as error:
            raise StorageError(f"{self._file} cannot be used ({error}): put a backup in its place") from error
        except OSError as error:
            raise StorageError(
                f"{self._file.parent} cannot be used ({error.strerror or error}): see to the disk, or choose another "
                "with --set coordinator.directory=PATH"
            ) from error

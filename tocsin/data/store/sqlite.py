"""The store's database as a SQLite file: its connections, its transactions, and what its refusals mean.

Changes go through one connection, reads have another, so that a long change never keeps a reader waiting.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from tocsin.data.store.database import Connection, Row
from tocsin.data.store.schema import SQLITE, VERSION, migrations, passing_tables
from tocsin.errors import BusyError, StorageError, TocsinError
from tocsin.private import make_private
from tocsin.sqlite import transaction

_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",
    # After a batch of a million the log is cut back to this size.
    "PRAGMA journal_size_limit = 67108864",
)
# In KiB: room for the index that a large batch of subscriptions goes into.
_WRITER_CACHE: Final = 32_768
_BUSY_SECONDS: Final = 10.0
_PRIMARY_CODE: Final = 0xFF
_REFUSALS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full: nothing was changed; free space at {directory} and try again",
    sqlite3.SQLITE_IOERR: "the disk failed ({error}): nothing was changed; check the disk of {directory} and try again",
    sqlite3.SQLITE_READONLY: "{file} cannot be written: nothing was changed; make {directory} writable and try again",
    sqlite3.SQLITE_CANTOPEN: "{file} cannot be opened: check that {directory} exists and is writable",
    sqlite3.SQLITE_CORRUPT: "{file} is damaged ({error}): put a backup in its place",
    sqlite3.SQLITE_NOTADB: "{file} is not a Tocsin store ({error}): put a backup in its place, or move it away",
}


class SqliteDatabase:
    """One database file, created when missing and brought to the newest schema. Safe to use from several threads."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changing, self._looking = Lock(), Lock()
        with self._explain():
            make_private(file)
            self._writer = _connect(file)
            try:
                self._writer.execute(f"PRAGMA cache_size = -{_WRITER_CACHE}")
                self._migrate()
                for statement in passing_tables(SQLITE):
                    self._writer.execute(statement)
                self._reader = _connect(file)
            except BaseException:
                self._writer.close()
                raise

    def claim(self, seize: bool = False) -> None:
        """Nothing is left to do: whoever has the lock of the directory has the file."""

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on disk at the end of the block, or nothing of it when the block raises."""
        with self._changing, self._explain(), transaction(self._writer):
            yield self._writer

    def aside(self) -> AbstractContextManager[sqlite3.Connection]:
        """A file takes one change at a time."""
        return self.changing()

    @contextmanager
    def looking(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading what has been committed; fetch within the block."""
        with self._looking, self._explain():
            yield self._reader

    def fill(self, connection: Connection, table: str, rows: Sequence[Row]) -> None:
        """Puts these, and nothing else, into one of the tables for a transaction's own use."""
        connection.execute(f"DELETE FROM {table}")
        if rows:
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def raise_ids(self, connection: Connection, table: str, above: int) -> None:
        """The ids of rows to come are above this number."""
        connection.execute(
            "INSERT INTO sqlite_sequence SELECT ?, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)",
            (table, table),
        )
        connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (above, table))

    def close(self) -> None:
        """Wait for what is under way, then let go of the file."""
        with self._changing, self._looking:
            self._reader.close()
            self._writer.close()

    def _migrate(self) -> None:
        with self.changing() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise StorageError(
                    f"{self._file} has schema {version}, this version of Tocsin knows {VERSION}: "
                    "use the newer version that wrote it"
                )
            for statement in migrations(version, SQLITE):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            refusal = self._refusal(error)
            if refusal is None:
                raise
            raise refusal from error
        except OSError as error:
            raise StorageError(
                f"{self._file.parent} cannot be used ({error.strerror or error}): see to the disk, or choose another "
                "with --set data.directory=PATH"
            ) from error

    def _refusal(self, error: sqlite3.Error) -> TocsinError | None:
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BusyError(f"another process is changing {self._file}: nothing was changed; try again")
        if code not in _REFUSALS:
            return None
        return StorageError(_REFUSALS[code].format(file=self._file, directory=self._file.parent, error=error))


def _connect(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection

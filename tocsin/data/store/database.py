"""The SQLite file beneath the store: its connections, its transactions, its schema, and what its refusals mean.

Changes go through one connection, one at a time, and are on disk when their transaction ends. Reads have a connection
of their own, so that a long change never keeps a reader waiting.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from tocsin.data.store.schema import MIGRATIONS
from tocsin.errors import BusyError, StorageError, TocsinError
from tocsin.private import make_private

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


class Database:
    """One database file, created when missing and brought to the newest schema. Safe to use from several threads."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changing, self._looking = Lock(), Lock()
        with self._explained():
            make_private(file)
            self._writer = _connected(file)
            try:
                self._writer.execute(f"PRAGMA cache_size = -{_WRITER_CACHE}")
                self._migrate()
                self._reader = _connected(file)
            except BaseException:
                self._writer.close()
                raise

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on disk at the end of the block, or nothing of it when the block raises."""
        with self._changing, self._explained():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                # After some refusals SQLite has already rolled back, and says so with an error.
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def looking(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading what has been committed; fetch within the block."""
        with self._looking, self._explained():
            yield self._reader

    def close(self) -> None:
        """Wait for what is under way, then let go of the file."""
        with self._changing, self._looking:
            self._reader.close()
            self._writer.close()

    def _migrate(self) -> None:
        with self.changing() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > len(MIGRATIONS):
                raise StorageError(
                    f"{self._file} has schema {version}, this version of Tocsin knows {len(MIGRATIONS)}: "
                    "use the newer version that wrote it"
                )
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            refusal = self._refusal(error)
            if refusal is None:
                raise
            raise refusal from error
        except OSError as error:
            raise StorageError(f"{self._file.parent}: {error.strerror or error}") from error

    def _refusal(self, error: sqlite3.Error) -> TocsinError | None:
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BusyError(f"another process is changing {self._file}: nothing was changed; try again")
        if code not in _REFUSALS:
            return None
        return StorageError(_REFUSALS[code].format(file=self._file, directory=self._file.parent, error=error))


def _connected(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection

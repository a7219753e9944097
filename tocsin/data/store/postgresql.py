"""The store's database on a PostgreSQL server."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import psycopg
from psycopg import sql

from tocsin.data.store.database import Connection, Row, Rows
from tocsin.data.store.schema import POSTGRESQL, VERSION, migrations, passing_tables
from tocsin.errors import StorageError
from tocsin.postgresql import Connection as ServerConnection
from tocsin.postgresql import PostgresqlSchema, placeholders

_SCHEMA: Final = "tocsin_data"
_LOCK: Final = 2
_XACT_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05


class PostgresqlDatabase:
    """The schema ``tocsin_data`` of the database at ``url``. Safe to use from several threads.

    A connection that breaks while a change is being committed leaves it open whether that was done: then the server is
    asked before anything is said.
    """

    def __init__(self, url: str) -> None:
        self._writer = PostgresqlSchema(url, _SCHEMA, "data cluster", _LOCK, passing_tables(POSTGRESQL))
        self._reader = PostgresqlSchema(url, _SCHEMA, "data cluster", _LOCK)
        self._aside = PostgresqlSchema(url, _SCHEMA, "data cluster", _LOCK)
        self._migrate()

    def claim(self, seize: bool = False) -> None:
        """Makes this the only data cluster on the database; if there is another, it is a ConflictError.

        One that is seized from loses its connection, and finds the database another's when it makes a new one.
        """
        self._writer.claim(seize)

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction: all of it is on disk at the end of the block, or nothing of it when the block raises."""
        number: int | None = None
        try:
            with self._writer.connection() as connection:
                connection.execute("BEGIN")
                try:
                    yield _SharedSqlConnection(connection)
                    number = _transaction_number(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")
                    raise
        except StorageError:
            if number is None or not self._was_committed(number):
                raise

    @contextmanager
    def aside(self) -> Iterator[Connection]:
        """A connection for one short statement, which is kept by itself, however long a change under way takes."""
        with self._aside.connection() as connection:
            yield _SharedSqlConnection(connection)

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """A connection for reading what has been committed; fetch within the block."""
        with self._reader.connection() as connection:
            yield _SharedSqlConnection(connection)

    def fill(self, connection: Connection, table: str, rows: Sequence[Row]) -> None:
        """Puts these, and nothing else, into one of the tables for a transaction's own use."""
        server = cast(_SharedSqlConnection, connection).server
        server.execute(f"DELETE FROM {table}")
        with server.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
            for row in rows:
                copy.write_row(row)
        # Else it would be taken for large, and what it is joined with be read as a whole.
        server.execute(f"ANALYZE {table}")

    def raise_ids(self, connection: Connection, table: str, above: int) -> None:
        """The ids of rows to come are above this number."""
        connection.execute(
            "SELECT setval(s, greatest(nextval(s), ?)) FROM (SELECT pg_get_serial_sequence(?, 'id')::regclass AS s) t",
            (max(above, 1), table),
        )

    def close(self) -> None:
        """Waits for what is under way, then lets go."""
        self._writer.close()
        self._reader.close()
        self._aside.close()

    def _migrate(self) -> None:
        # The tables of a connection are put before those of the schema in its path, and need none of these.
        self._writer.migrate(VERSION, lambda version: [(each, ()) for each in migrations(version, POSTGRESQL)])

    def _was_committed(self, number: int) -> bool:
        """Asks on another connection; while the server has not yet noticed that the one is gone, again."""
        deadline = time.monotonic() + _XACT_SECONDS
        while True:
            with self.looking() as connection:
                (status,) = connection.execute("SELECT pg_xact_status(?::text::xid8)", (str(number),)).fetchone()
            if status != "in progress" or time.monotonic() > deadline:
                return bool(status == "committed")
            time.sleep(_POLL_SECONDS)


class _SharedSqlConnection:
    """A connection that takes the statements that SQLite takes."""

    def __init__(self, server: ServerConnection) -> None:
        self.server = server

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        return self.server.execute(placeholders(statement), values)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        self.server.cursor().executemany(placeholders(statement), rows)


def _transaction_number(connection: ServerConnection) -> int | None:
    """What a transaction is known by on the server; None of one that has changed nothing."""
    (number,) = connection.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone() or (None,)
    return None if number is None else int(number)

"""The store in a PostgreSQL database: one schema of it, which one coordinator at a time may write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.store import sql
from tocsin.coordinator.store.records import Change, StoredState
from tocsin.postgresql import Connection, PostgresqlSchema, SharedSql, facts, placeholders

_LOCK: Final = 0


class PostgresqlStore:
    """The state in the schema ``tocsin`` of the database at ``url``. It may be used from any thread, one at a time.

    What can go wrong: see :class:`PostgresqlSchema`. A batch may be written again in any case.
    """

    def __init__(self, url: str) -> None:
        self._schema = PostgresqlSchema(url, "tocsin", "coordinator", _LOCK)
        self._schema.migrate(sql.SCHEMA, _steps)

    def claim(self) -> None:
        """Keeps other coordinators off, until this store is closed or its process ends."""
        self._schema.claim()

    def keyring(self) -> Keyring:
        """What tokens are signed with, and which are not taken."""
        with self._schema.connection() as connection:
            return sql.decode_keyring(connection.execute(sql.READ_KEYRING).fetchone())

    def amend(self, change: Callable[[Keyring], Keyring], *registered: str) -> None:
        """Changes the keyring and registers subscribers: all of it, on disk, or nothing."""
        with self._schema.connection() as connection, connection.transaction():
            for statement, row in sql.amendment(_locked_keyring(connection), change, registered):
                connection.execute(placeholders(statement), row)

    def registration(self, subscriber: str) -> int:
        """Which registration of this name is the present one."""
        with self._schema.connection() as connection:
            return sql.registration(connection.execute(placeholders(sql.READ_REGISTRATION), (subscriber,)).fetchone())

    def unplaced_subscribers(self) -> list[tuple[str, int]]:
        """Who is registered, as which of that name, and has no broker."""
        with self._schema.connection() as connection:
            return sql.read_unplaced(connection.execute(sql.READ_UNPLACED))

    def read(self) -> StoredState:
        """All that is kept."""
        with self._schema.connection() as connection, connection.transaction():
            run = connection.execute
            return sql.state(
                facts(connection).items(), run(sql.READ_BROKERS), run(sql.READ_ASSIGNMENTS), run(sql.READ_HELD)
            )

    def write(self, changes: Sequence[Change]) -> None:
        """Keeps a batch: all of it, on disk, or nothing."""
        with self._schema.connection() as connection, connection.transaction():
            for statement, row in sql.dismissals(partial(_locked_keyring, connection), changes):
                connection.execute(placeholders(statement), row)
            with connection.pipeline():
                for change in changes:
                    for statement, row in sql.statements(change):
                        connection.execute(placeholders(statement), row)

    def close(self) -> None:
        """Lets go of the database, for the next coordinator at once."""
        self._schema.close()


def _steps(found: int) -> SharedSql:
    if found:
        return list(sql.steps(found))
    return [(table, ()) for table in sql.TABLES] + [(sql.PUT_FACT, fact) for fact in sql.first_facts()]


def _locked_keyring(connection: Connection) -> Keyring:
    """Whoever else would change it waits, and then changes what it is by then."""
    return sql.decode_keyring(connection.execute(f"{sql.READ_KEYRING} FOR UPDATE").fetchone())

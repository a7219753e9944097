"""A schema in a PostgreSQL database, kept by one process at a time, over a connection that is made anew when lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from secrets import token_hex
from threading import RLock
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg

from tocsin.errors import BusyError, ConflictError, InvalidError, StorageError, SupersededError

# A server that is gone without a word is noticed within seconds.
_PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_EVICT_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05
_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
_HOLDER: Final = (
    "SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'"
    " AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND ((classid::bigint << 32) | objid::bigint) = %s"
)
# Advisory locks of one database are known by number only: those of this name, "tocsin" in ASCII and what follows it.
_LOCKS: Final = 0x746F6373696E
_FACTS: Final = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_UNLOCK: Final = "SELECT pg_advisory_unlock(%s)"
_READ_FACTS: Final = "SELECT name, value FROM facts"
_PUT_FACT: Final = "INSERT INTO facts VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"

Connection = psycopg.Connection[tuple[Any, ...]]
SharedSql = Sequence[tuple[str, Sequence[object]]]
"""Statements in the SQL that SQLite has, too, with ``?`` for each of their values."""


class PostgresqlSchema:
    """One schema of the database at ``url``. It may be used from any thread, one at a time.

    Args:
        name: of the schema, which is made if it is missing.
        who: what keeps its state there, as others are told: ``coordinator``.
        lock: two numbers, this and the next, that no other schema of the database has.
        prepare: statements for each new connection.

    What can go wrong: the server cannot be reached, goes away or refuses (:class:`StorageError`, :class:`BusyError`).
    Nothing of a transaction was kept then, or, if the connection broke while it was being committed, perhaps all of it.
    The next call connects anew. If another process has claimed the schema meanwhile, or has it at present, it is a
    :class:`ConflictError`.
    """

    def __init__(self, url: str, name: str, who: str, lock: int, prepare: Sequence[str] = ()) -> None:
        self._url, self._schema, self._who, self._prepare = url, name, who, prepare
        self._claim, self._founding = _LOCKS + lock, _LOCKS + lock + 1
        self._name = f"tocsin-{who.replace(' ', '-')}-{token_hex(4)}"
        self._open: Connection | None = None
        # Transactions of several threads on one connection would be one.
        self._turn = RLock()
        self._epoch: int | None = None

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """The connection, made anew if the last one is lost, and given up when something goes wrong with it."""
        with self._turn:
            try:
                if self._open is None:
                    self._open = self._connect()
                yield self._open
            except psycopg.DataError as error:
                raise InvalidError(f"{' '.join(str(error).split())}; nothing was changed") from error
            except psycopg.Error as error:
                # Before another thread has its turn, which would have the connection that is given up.
                self._disconnect()
                said = " ".join(str(error).split())
                raise StorageError(f"{self.safe_url()}: {said}; nothing was changed; see to the database") from error

    def claim(self, seize: bool = False) -> None:
        """Keeps others off, until this is closed or its process ends.

        Args:
            seize: whether the connection of another that has claimed it is ended, instead of a ConflictError.
        """
        with self.connection() as connection:
            if seize:
                self._evict(connection)
            self._lock(connection)
            epoch = int(facts(connection)["epoch"]) + 1
            connection.execute(_PUT_FACT, ("epoch", str(epoch)))
            self._epoch = epoch

    def migrate(self, version: int, steps: Callable[[int], SharedSql]) -> None:
        """Makes the tables of a new schema, brings old ones up to date, and refuses those of a newer version.

        Args:
            steps: what brings tables of an earlier version, 0 for none, to this one.
        """
        with self.connection() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._founding,))
            if _missing(connection, f"SELECT to_regclass('{self._schema}.facts')"):
                self._create(connection)
            found = int(facts(connection)["schema"])
            if found < version:
                for statement, row in steps(found):
                    connection.execute(placeholders(statement), row)
                connection.execute(_PUT_FACT, ("schema", str(version)))
        if found > version:
            self.close()
            raise StorageError(f"{self.safe_url()} has schema {found}, which a newer version of Tocsin wrote: use that")

    def close(self) -> None:
        """Lets go of the database, for the next process at once: the server notices some time after it."""
        if self._open is not None and self._epoch is not None:
            with suppress(psycopg.Error):
                self._open.execute(_UNLOCK, (self._claim,))
        self._disconnect()

    def safe_url(self) -> str:
        """The database without its password."""
        parts = urlsplit(self._url)
        user, at, host = parts.netloc.rpartition("@")
        return f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}"

    def _disconnect(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connect(self) -> Connection:
        connection = psycopg.connect(self._url, autocommit=True, application_name=self._name, **_PATIENCE)
        try:
            connection.execute(f"SET search_path TO {self._schema}")
            connection.execute(_DURABLE)
            for statement in self._prepare:
                connection.execute(statement)
            if self._epoch is not None:
                self._lock_again(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _lock(self, connection: Connection) -> None:
        (locked,) = connection.execute("SELECT pg_try_advisory_lock(%s)", (self._claim,)).fetchone() or (False,)
        if locked:
            return
        for pid, name in connection.execute(_HOLDER, (self._claim,)).fetchall():
            if name == self._name:
                # A connection of our own that broke, which the server has not noticed yet.
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
                raise BusyError(f"{self.safe_url()}: the last connection is being ended; try again")
        raise ConflictError(f"another {self._who} works on {self.safe_url()}: stop it first, or use another database")

    def _evict(self, connection: Connection) -> None:
        """Ends the connection of whoever has claimed the schema, and waits until the server has let go of the claim."""
        deadline = time.monotonic() + _EVICT_SECONDS
        while holders := connection.execute(_HOLDER, (self._claim,)).fetchall():
            for pid, _ in holders:
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            if time.monotonic() > deadline:
                return
            time.sleep(_LOOK_SECONDS)

    def _lock_again(self, connection: Connection) -> None:
        try:
            self._lock(connection)
        except ConflictError as error:
            raise SupersededError(str(error)) from None
        try:
            self._check_epoch(connection)
        except SupersededError:
            # At once: the server notices some time after it that a connection is closed, and whoever came meanwhile may
            # be just about to come back.
            connection.execute(_UNLOCK, (self._claim,))
            raise

    def _check_epoch(self, connection: Connection) -> None:
        if int(facts(connection)["epoch"]) != self._epoch:
            raise SupersededError(
                f"another {self._who} has worked on {self.safe_url()} meanwhile, so that what this one knows is "
                "outdated: start it again"
            )

    def _create(self, connection: Connection) -> None:
        # Where the role may not create schemas, an administrator has made it.
        if _missing(connection, f"SELECT to_regnamespace('{self._schema}')"):
            connection.execute(f"CREATE SCHEMA {self._schema}")
        connection.execute(_FACTS)
        for fact in (("schema", "0"), ("epoch", "0")):
            connection.execute(_PUT_FACT, fact)


def facts(connection: Connection) -> dict[str, str]:
    """What the schema knows by name: its version, its epoch (how many have claimed it), and what is put there."""
    rows: list[tuple[str, str]] = connection.execute(_READ_FACTS).fetchall()
    return dict(rows)


@lru_cache
def placeholders(statement: str) -> str:
    """A statement with the placeholders of this driver."""
    return statement.replace("?", "%s")


def _missing(connection: Connection, question: str) -> bool:
    return (connection.execute(question).fetchone() or (None,))[0] is None

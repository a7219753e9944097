"""The store in a PostgreSQL database, in a schema of its own there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from secrets import token_hex
from threading import RLock
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg

from tocsin.coordinator.keyring import Keyring
from tocsin.coordinator.store import sql
from tocsin.coordinator.store.records import Change, StoredState
from tocsin.errors import BusyError, ConflictError, StorageError

# Advisory locks of one database are known by number only: these are "tocsin" in ASCII, and the one after it.
_CLAIM: Final = 0x746F6373696E
_FOUNDING: Final = _CLAIM + 1
# A server that is gone without a word is noticed within seconds.
_PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
_HOLDER: Final = (
    "SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'"
    " AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND ((classid::bigint << 32) | objid::bigint) = %s"
)

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresqlStore:
    """The state in the schema ``tocsin`` of the database at ``url``. It may be used from any thread, one at a time.

    What can go wrong: the server cannot be reached, goes away or refuses (:class:`StorageError`, :class:`BusyError`).
    Nothing of the batch was kept then, or, if the connection broke while it was being committed, all of it; either way
    it may be written again. The next call connects anew. If another coordinator has worked on the database meanwhile,
    or does at present, it is a :class:`ConflictError`.
    """

    def __init__(self, url: str) -> None:
        self._url, self._name = url, f"tocsin-coordinator-{token_hex(4)}"
        self._open: Connection | None = None
        # Transactions of several threads on one connection would be one.
        self._turn = RLock()
        self._epoch: int | None = None
        with self._connected() as connection:
            self._found(connection)

    def claim(self) -> None:
        """Keeps other coordinators off, until this store is closed or its process ends."""
        with self._connected() as connection:
            self._lock(connection)
            epoch = _epoch(connection) + 1
            connection.execute(_own(sql.PUT_FACT), ("epoch", str(epoch)))
            self._epoch = epoch

    def keyring(self) -> Keyring:
        """What tokens are signed with, and which are not taken."""
        with self._connected() as connection:
            return sql.decode_keyring(connection.execute(sql.READ_KEYRING).fetchone())

    def amend(self, change: Callable[[Keyring], Keyring], *registered: str) -> None:
        """Changes the keyring and registers subscribers: all of it, on disk, or nothing."""
        with self._connected() as connection, connection.transaction():
            for statement, row in sql.amendment(_locked_keyring(connection), change, registered):
                connection.execute(_own(statement), row)

    def registration(self, subscriber: str) -> int:
        """Which registration of this name is the present one."""
        with self._connected() as connection:
            return sql.registration(connection.execute(_own(sql.READ_REGISTRATION), (subscriber,)).fetchone())

    def unplaced_subscribers(self) -> list[tuple[str, int]]:
        """Who is registered, as which of that name, and has no broker."""
        with self._connected() as connection:
            return sql.read_unplaced(connection.execute(sql.READ_UNPLACED))

    def read(self) -> StoredState:
        """All that is kept."""
        with self._connected() as connection, connection.transaction():
            run = connection.execute
            return sql.state(
                _facts(connection).items(), run(sql.READ_BROKERS), run(sql.READ_ASSIGNMENTS), run(sql.READ_HELD)
            )

    def write(self, changes: Sequence[Change]) -> None:
        """Keeps a batch: all of it, on disk, or nothing."""
        with self._connected() as connection, connection.transaction():
            for statement, row in sql.dismissals(partial(_locked_keyring, connection), changes):
                connection.execute(_own(statement), row)
            with connection.pipeline():
                for change in changes:
                    for statement, row in sql.statements(change):
                        connection.execute(_own(statement), row)

    def close(self) -> None:
        """Lets go of the database, for the next coordinator at once: the server notices some time after it."""
        if self._open is not None and self._epoch is not None:
            with suppress(psycopg.Error):
                self._open.execute("SELECT pg_advisory_unlock(%s)", (_CLAIM,))
        self._disconnect()

    def _disconnect(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """The connection, made anew if the last one is lost, and given up when something goes wrong with it."""
        try:
            with self._turn:
                if self._open is None:
                    self._open = self._connect()
                yield self._open
        except psycopg.Error as error:
            self._disconnect()
            said = " ".join(str(error).split())
            raise StorageError(f"{self._shown()}: {said}; nothing was changed; see to the database") from error

    def _connect(self) -> Connection:
        connection = psycopg.connect(self._url, autocommit=True, application_name=self._name, **_PATIENCE)
        try:
            connection.execute("SET search_path TO tocsin")
            connection.execute(_DURABLE)
            if self._epoch is not None:
                self._lock(connection)
                self._check_epoch(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _lock(self, connection: Connection) -> None:
        (locked,) = connection.execute("SELECT pg_try_advisory_lock(%s)", (_CLAIM,)).fetchone() or (False,)
        if locked:
            return
        for pid, name in connection.execute(_HOLDER, (_CLAIM,)).fetchall():
            if name == self._name:
                # A connection of our own that broke, which the server has not noticed yet.
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
                raise BusyError(f"{self._shown()}: the last connection is being ended; try again")
        raise ConflictError(f"another coordinator works on {self._shown()}: stop it first, or use another database")

    def _check_epoch(self, connection: Connection) -> None:
        if _epoch(connection) != self._epoch:
            raise ConflictError(
                f"another coordinator has worked on {self._shown()} meanwhile, so that what this one knows is outdated:"
                " start it again"
            )

    def _found(self, connection: Connection) -> None:
        """Makes the tables of a new database, brings old ones up to date, and refuses those of a newer version."""
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_FOUNDING,))
            if _missing(connection, "SELECT to_regclass('tocsin.facts')"):
                _create(connection)
            facts = _facts(connection)
            if int(facts["schema"]) < sql.SCHEMA:
                _upgrade(connection, int(facts["schema"]))
        if int(facts["schema"]) > sql.SCHEMA:
            self.close()
            raise StorageError(
                f"{self._shown()} has schema {facts['schema']}, which a newer version of Tocsin wrote: use that"
            )

    def _shown(self) -> str:
        """The database without its password."""
        parts = urlsplit(self._url)
        user, at, host = parts.netloc.rpartition("@")
        return f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}"


def _create(connection: Connection) -> None:
    # Where the role may not create schemas, an administrator has made it.
    if _missing(connection, "SELECT to_regnamespace('tocsin')"):
        connection.execute("CREATE SCHEMA tocsin")
    for table in sql.TABLES:
        connection.execute(table)
    for fact in [*sql.first_facts(), ("schema", str(sql.SCHEMA)), ("epoch", "0")]:
        connection.execute(_own(sql.PUT_FACT), fact)


def _upgrade(connection: Connection, schema: int) -> None:
    for statement, row in [*sql.steps(schema), (sql.PUT_FACT, ("schema", str(sql.SCHEMA)))]:
        connection.execute(_own(statement), row)


def _locked_keyring(connection: Connection) -> Keyring:
    """Whoever else would change it waits, and then changes what it is by then."""
    return sql.decode_keyring(connection.execute(f"{sql.READ_KEYRING} FOR UPDATE").fetchone())


def _missing(connection: Connection, question: str) -> bool:
    return (connection.execute(question).fetchone() or (None,))[0] is None


def _epoch(connection: Connection) -> int:
    """How many coordinators have claimed the database so far."""
    return int(_facts(connection)["epoch"])


def _facts(connection: Connection) -> dict[str, str]:
    rows: list[tuple[str, str]] = connection.execute(sql.READ_FACTS).fetchall()
    return dict(rows)


@lru_cache
def _own(statement: str) -> str:
    """A statement with the placeholders of this driver."""
    return statement.replace("?", "%s")

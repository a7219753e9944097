"""State of the data cluster that must survive: definitions, brokers, BE subscriptions and tokens.

A relational store behind a narrow interface: what a method has returned from is on disk, what it raised from left no
trace. It is a SQLite file or a PostgreSQL database; nothing outside this package knows which.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tocsin.data.store.brokers import Broker, Brokers
from tocsin.data.store.database import Database
from tocsin.data.store.definitions import Definitions, StoredDefinition
from tocsin.data.store.head import HeadRecord, SeenHead
from tocsin.data.store.histories import Histories
from tocsin.data.store.set_aside import Aside, SetAside
from tocsin.data.store.sqlite import SqliteDatabase
from tocsin.data.store.subscriptions import SubscriptionTable
from tocsin.data.store.tokens import RememberedTokens, Role, StoredToken, TokenTable
from tocsin.data.store.topics import KnownTopic, Topics
from tocsin.errors import ConflictError, SettingsError
from tocsin.settings.sections import DataSettings

__all__ = [
    "Aside",
    "Broker",
    "Brokers",
    "Definitions",
    "HeadRecord",
    "Histories",
    "KnownTopic",
    "RememberedTokens",
    "Role",
    "SeenHead",
    "SetAside",
    "Store",
    "StoredDefinition",
    "StoredToken",
    "SubscriptionTable",
    "TokenTable",
    "Topics",
    "open_store",
]


def _now() -> datetime:
    return datetime.now(UTC)


class Store:
    """The store of a data cluster, created when missing. Every method may be called from any thread.

    Args:
        directory: the data directory; unless there is a ``url`` the store is its file ``state.sqlite``.
        clock: tells the time for what is remembered as created or registered at.
        url: of a PostgreSQL database.
    """

    def __init__(self, directory: Path, clock: Callable[[], datetime] = _now, url: str = "") -> None:
        self._database = _open_database(directory, url)
        self.definitions = Definitions(self._database, clock)
        self.histories = Histories(self._database)
        self.brokers = Brokers(self._database, clock)
        self.subscriptions = SubscriptionTable(self._database)
        self.set_aside = SetAside(self._database)
        self.tokens = TokenTable(self._database, clock)
        self.topics = Topics(self._database)
        self.head = HeadRecord(self._database)
        self.term = 0
        """Under which this data cluster works; 0 until it has claimed the store."""
        self.identity = self._identity()

    def claim(self, silent: SeenHead | None = None) -> None:
        """Makes this the only data cluster on the store, under a term; if there is another, it is a ConflictError.

        Args:
            silent: another that has given no sign of life for too long, and is superseded unless it has since.
        """
        if silent is not None and self.head.last_seen() != silent:
            raise ConflictError("the data cluster has given a sign of life, or another has taken over: stand by")
        self._database.claim(seize=silent is not None)
        self.term = self.head.begin()

    def close(self) -> None:
        """Let go of the database; the store cannot be used afterwards."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _identity(self) -> str:
        """What tells this store from any other, such as one made anew in its place."""
        with self._database.looking() as connection:
            (text,) = connection.execute("SELECT text FROM identity").fetchone()
        return str(text)


def open_store(settings: DataSettings) -> Store:
    """The store that the settings name: a file in the data directory, or the database at ``data.state``."""
    return Store(settings.directory, url=settings.state)


def _open_database(directory: Path, url: str) -> Database:
    if not url:
        return SqliteDatabase(directory / "state.sqlite")
    if not url.startswith(("postgresql://", "postgres://")):
        raise SettingsError(
            'data.state must be "" for a file in data.directory, or the URL of a PostgreSQL database: '
            "postgresql://user@host/database"
        )
    try:
        from tocsin.data.store.postgresql import PostgresqlDatabase
    except ImportError:
        raise SettingsError("a data.state in PostgreSQL needs psycopg: pip install 'tocsin[postgresql]'") from None
    return PostgresqlDatabase(url)

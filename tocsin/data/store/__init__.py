"""State of the data cluster that must survive: definitions, brokers, BE subscriptions and tokens.

A relational store behind a narrow interface: what a method has returned from is on disk, what it raised from left no
trace. SQLite today; nothing outside this package knows it.
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
from tocsin.data.store.histories import Histories
from tocsin.data.store.set_aside import Aside, SetAside
from tocsin.data.store.subscriptions import SubscriptionTable
from tocsin.data.store.tokens import Role, StoredToken, TokenTable

__all__ = [
    "Aside",
    "Broker",
    "Brokers",
    "Definitions",
    "Histories",
    "Role",
    "SetAside",
    "Store",
    "StoredDefinition",
    "StoredToken",
    "SubscriptionTable",
    "TokenTable",
]


def _now() -> datetime:
    return datetime.now(UTC)


class Store:
    """The store in ``directory``, created when missing. Every method may be called from any thread.

    Args:
        directory: the data directory; the store is its file ``state.sqlite``.
        clock: tells the time for what is remembered as created or registered at.
    """

    def __init__(self, directory: Path, clock: Callable[[], datetime] = _now) -> None:
        self._database = Database(directory / "state.sqlite")
        self.definitions = Definitions(self._database, clock)
        self.histories = Histories(self._database)
        self.brokers = Brokers(self._database, clock)
        self.subscriptions = SubscriptionTable(self._database)
        self.set_aside = SetAside(self._database)
        self.tokens = TokenTable(self._database, clock)
        self.identity = self._identity()

    def close(self) -> None:
        """Let go of the file; the store cannot be used afterwards."""
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

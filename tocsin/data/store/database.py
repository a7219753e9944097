"""What the store needs of a database: transactions over SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]


class Rows(Protocol):
    """What a statement has found, or how many rows it has changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """Carries out statements, with ``?`` for each of their values."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows: ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object: ...


class Database(Protocol):
    """Changes go one at a time and are on disk when their transaction ends. A long change keeps no reader waiting.

    What can go wrong: the disk or the server refuses, or is away (:class:`StorageError`), or somebody else is changing
    it (:class:`BusyError`). Nothing was changed then.
    """

    def claim(self, seize: bool = False) -> None:
        """Makes this the only data cluster on the database; if there is another, it is a ConflictError.

        Args:
            seize: whether another, which may only be held up, is to lose its connection.
        """

    def changing(self) -> AbstractContextManager[Connection]:
        """A transaction: all of it is on disk at the end of the block, or nothing of it when the block raises."""

    def aside(self) -> AbstractContextManager[Connection]:
        """A connection for one short statement, which is kept by itself, however long a change under way takes."""

    def looking(self) -> AbstractContextManager[Connection]:
        """A connection for reading what has been committed; fetch within the block."""

    def fill(self, connection: Connection, table: str, rows: Sequence[Row]) -> None:
        """Puts these, and nothing else, into one of the tables for a transaction's own use."""

    def raise_ids(self, connection: Connection, table: str, above: int) -> None:
        """The ids of rows to come are above this number."""

    def close(self) -> None:
        """Waits for what is under way, then lets go."""

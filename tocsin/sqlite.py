"""What all our SQLite files share: transactions of which everything is on disk in the end, or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """What is executed within the block is committed at its end, or undone if the block or the commit raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some refusals SQLite has already rolled back, and says so with an error.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise

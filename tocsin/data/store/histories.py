"""The incarnations of every channel, in their order; what they are for is told in :mod:`tocsin.model.histories`."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.data.store.database import Connection, Database
from tocsin.model.histories import DROPPED, NEWEST, Era, new_incarnation


class Histories:
    """By the name of a channel, letter case aside. A history outlives its channel, so that a drop is remembered."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, executions: Mapping[str, int]) -> None:
        """The data cluster has started: each channel goes on after its last execution, under a new incarnation."""
        incarnation = new_incarnation()
        with self._database.changing() as connection:
            for channel, execution in executions.items():
                if not _eras(connection, channel):
                    # Created before there were incarnations: cursors of that time name none.
                    _append(connection, channel, Era("", 0))
                _append(connection, channel, Era(incarnation, execution))

    def of(self, channel: str) -> list[Era]:
        """The newest entries of a channel's history; none of one that never was."""
        with self._database.looking() as connection:
            return _eras(connection, channel)


def create_incarnation(connection: Connection, channel: str) -> None:
    """A channel is new: what an earlier one of its name has counted does not count for it."""
    began = DROPPED if _eras(connection, channel) else 0
    _append(connection, channel, Era(new_incarnation(), began))


def _append(connection: Connection, channel: str, era: Era) -> None:
    row = (channel.casefold(), era.incarnation, era.began)
    connection.execute("INSERT INTO incarnations (channel, incarnation, began) VALUES (?, ?, ?)", row)
    connection.execute(
        "DELETE FROM incarnations WHERE channel = ? AND id NOT IN "
        "(SELECT id FROM incarnations WHERE channel = ? ORDER BY id DESC LIMIT ?)",
        (channel.casefold(), channel.casefold(), NEWEST),
    )


def _eras(connection: Connection, channel: str) -> list[Era]:
    rows = connection.execute(
        "SELECT incarnation, began FROM incarnations WHERE channel = ? ORDER BY id", (channel.casefold(),)
    )
    return [Era(incarnation, began) for incarnation, began in rows.fetchall()]

"""The datasets, feeds and channels that have been created."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from tocsin.data.store.database import Connection, Database
from tocsin.data.store.histories import create_incarnation
from tocsin.data.store.topics import remove_topic
from tocsin.errors import ConflictError, NotFoundError
from tocsin.model.quoting import quote_value
from tocsin.schema.definitions import Channel, Dataset, Definition, Feed

_KINDS: Final[dict[str, type[Definition]]] = {"dataset": Dataset, "feed": Feed, "channel": Channel}
_KIND_OF: Final = {kind: word for word, kind in _KINDS.items()}

D = TypeVar("D", Dataset, Feed, Channel)


class StoredDefinition(msgspec.Struct, frozen=True):
    """A definition and when it was first put; a replacement keeps the time and the place in the order."""

    definition: Definition
    created_at: datetime


class Definitions:
    """What was created, in the order of creation. Each kind has its own names, letter case aside as in SQL."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    def put(self, definition: Definition) -> None:
        """Keep the definition, in place of one of its kind and name.

        A channel's parameters cannot change while there are subscriptions, whose values would no longer fit them.
        """
        with self._database.changing() as connection:
            if isinstance(definition, Channel):
                _check_parameters(connection, definition)
                if _row(connection, Channel, definition.name) is None:
                    create_incarnation(connection, definition.name)
            connection.execute(
                "INSERT INTO definitions (kind, name, content, created_at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (kind, name) DO UPDATE SET content = excluded.content",
                (
                    _KIND_OF[type(definition)],
                    definition.name.casefold(),
                    msgspec.json.encode(definition).decode(),
                    self._clock().isoformat(),
                ),
            )

    def remove(self, kind: type[Definition], name: str) -> bool:
        """Forget the definition, and with a channel its subscriptions; False when there was none."""
        with self._database.changing() as connection:
            row = _row(connection, kind, name)
            if row is None:
                return False
            if kind is Channel:
                remove_subscriptions(connection, name)
            if kind is Feed:
                remove_topic(connection, name)
            connection.execute("DELETE FROM definitions WHERE id = ?", row[:1])
        return True

    def all(self) -> list[StoredDefinition]:
        """All definitions, in the order of creation."""
        with self._database.looking() as connection:
            rows = connection.execute("SELECT kind, content, created_at FROM definitions ORDER BY id").fetchall()
        return [
            StoredDefinition(msgspec.json.decode(content, type=_KINDS[kind]), datetime.fromisoformat(created_at))
            for kind, content, created_at in rows
        ]

    def find(self, kind: type[D], name: str) -> D | None:
        """The definition of that kind and name, or None."""
        with self._database.looking() as connection:
            row = _row(connection, kind, name)
        return msgspec.json.decode(row[1], type=kind) if row else None


def defined_channel(connection: Connection, channel: Channel) -> int:
    """The number that stands for a channel within the store; refused unless it is defined with these parameters."""
    row = _row(connection, Channel, channel.name)
    if row is None:
        raise NotFoundError(f"there is no channel {quote_value(channel.name)}: create it first")
    if not msgspec.json.decode(row[1], type=Channel).same_subscriptions(channel):
        raise ConflictError(f"channel {channel.name} has been created anew with other parameters: subscribe anew")
    return row[0]


def remove_subscriptions(connection: Connection, channel: str) -> None:
    """Remove all subscriptions of a channel and who holds them."""
    row = _row(connection, Channel, channel)
    if row is None:
        return
    connection.execute("DELETE FROM holders WHERE be IN (SELECT id FROM subscriptions WHERE channel = ?)", row[:1])
    connection.execute("DELETE FROM subscriptions WHERE channel = ?", row[:1])
    connection.execute("DELETE FROM set_aside WHERE channel = ?", row[:1])


def _row(connection: Connection, kind: type[Definition], name: str) -> tuple[int, str] | None:
    row: tuple[int, str] | None = connection.execute(
        "SELECT id, content FROM definitions WHERE kind = ? AND name = ?", (_KIND_OF[kind], name.casefold())
    ).fetchone()
    return row


def _check_parameters(connection: Connection, channel: Channel) -> None:
    row = _row(connection, Channel, channel.name)
    if row is None or msgspec.json.decode(row[1], type=Channel).same_subscriptions(channel):
        return
    if connection.execute("SELECT 1 FROM subscriptions WHERE channel = ? LIMIT 1", row[:1]).fetchone():
        raise ConflictError(
            f"channel {channel.name} has subscriptions with other parameters: drop the channel before creating it anew"
        )

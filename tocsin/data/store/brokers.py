"""The brokers that may hold BE subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from tocsin.data.store.database import Connection, Database
from tocsin.data.store.labels import check_label
from tocsin.errors import ConflictError, NotFoundError
from tocsin.model.quoting import quote_value


class Broker(msgspec.Struct, frozen=True):
    """A registered broker; ``registered_at`` is when it first did."""

    name: str
    url: str
    registered_at: datetime


class Brokers:
    """The registered brokers, in the order in which they came."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    def register(self, name: str, url: str) -> Broker:
        """Remember the broker; one known by that name gets the new address and keeps what it holds."""
        with self._database.changing() as connection:
            connection.execute(
                "INSERT INTO brokers (name, url, registered_at) VALUES (?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET url = excluded.url",
                (check_label(name), url, self._clock().isoformat()),
            )
            row = connection.execute("SELECT name, url, registered_at FROM brokers WHERE name = ?", (name,)).fetchone()
        return _broker(*row)

    def all(self) -> list[Broker]:
        with self._database.looking() as connection:
            rows = connection.execute("SELECT name, url, registered_at FROM brokers ORDER BY id").fetchall()
        return [_broker(*row) for row in rows]

    def remove(self, name: str) -> bool:
        """Forget the broker, which must hold nothing any more; False when it was not known."""
        with self._database.changing() as connection:
            known = connection.execute("SELECT id FROM brokers WHERE name = ?", (name,)).fetchone()
            if known is None:
                return False
            if connection.execute("SELECT 1 FROM holders WHERE broker = ? LIMIT 1", known).fetchone():
                raise ConflictError(f"broker {name} still holds subscriptions: detach them first")
            connection.execute("DELETE FROM brokers WHERE id = ?", known)
        return True


def broker_id(connection: Connection, name: str) -> int:
    """The number that stands for a broker within the store; refused when nobody registered by that name."""
    row = connection.execute("SELECT id FROM brokers WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise NotFoundError(f"there is no broker {quote_value(name)}: register it first")
    return int(row[0])


def _broker(name: str, url: str, registered_at: str) -> Broker:
    return Broker(name, url, datetime.fromisoformat(registered_at))

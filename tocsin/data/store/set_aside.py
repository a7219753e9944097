"""Subscriptions that are not executed for a while, as their channel fails with them; told by what they ask for.

What is remembered outlives the subscription: who gives it up and asks for the same again is set aside still.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from tocsin.data.store.database import Database
from tocsin.errors import StorageError

_CHANNEL = "(SELECT id FROM definitions WHERE kind = 'channel' AND name = ?)"


class Aside(NamedTuple):
    """A subscription that is set aside, why, and until when (seconds since the epoch)."""

    be: int
    reason: str
    until: float


class SetAside:
    """What is set aside, of all channels."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: dict[str, list[Aside]] = {}

    def put(self, channel: str, reasons: Mapping[int, str], until: float) -> None:
        """Set subscriptions of the channel aside, each for a reason."""
        with self._database.changing() as connection:
            connection.executemany(
                "INSERT INTO set_aside SELECT channel, key, CAST(? AS TEXT), CAST(? AS DOUBLE PRECISION) "
                f"FROM subscriptions WHERE id = ? AND channel = {_CHANNEL} "
                "ON CONFLICT (channel, key) DO UPDATE SET reason = excluded.reason, until = excluded.until",
                ((_storable(reason), until, be, channel.casefold()) for be, reason in reasons.items()),
            )

    def of(self, channel: str, now: float) -> list[Aside]:
        """The subscriptions of the channel that are set aside; as last seen, while the database is away."""
        with suppress(StorageError):
            self._seen[channel] = self._look(channel, now)
        return [aside for aside in self._seen.get(channel, []) if aside.until > now]

    def _look(self, channel: str, now: float) -> list[Aside]:
        with self._database.looking() as connection:
            rows = connection.execute(
                "SELECT s.id, a.reason, a.until FROM set_aside a JOIN subscriptions s USING (channel, key) "
                f"WHERE a.channel = {_CHANNEL} AND a.until > ? ORDER BY s.id",
                (channel.casefold(), now),
            ).fetchall()
        return [Aside(*row) for row in rows]

    def clear(self, channel: str) -> None:
        """Try all subscriptions of the channel again."""
        with self._database.changing() as connection:
            connection.execute(f"DELETE FROM set_aside WHERE channel = {_CHANNEL}", (channel.casefold(),))


def _storable(reason: str) -> str:
    """A reason as databases take it: it may quote what somebody sent."""
    return reason.replace("\0", "\N{REPLACEMENT CHARACTER}")

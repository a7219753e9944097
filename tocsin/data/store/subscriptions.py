"""The BE subscriptions and which brokers hold them, as rows.

The channel is given by name and must have been defined, the broker must have been registered. A subscription exists
while at least one broker holds it; its id is never used again, by a copy of the store neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tocsin.data.store.brokers import broker_id
from tocsin.data.store.database import Connection, Database
from tocsin.data.store.definitions import defined_channel, remove_subscriptions
from tocsin.schema.definitions import Channel

_PAGE: Final = 100_000
# Each start of the data cluster begins a range of its own: 2^20 ids for every second, faster than they can be made, and
# below 2^53, so that JavaScript reads them exactly, until the year 2298.
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_IDS_PER_SECOND: Final = 20
# What a transaction works on at a time waits in memory.
_CHUNK: Final = 50_000


class SubscriptionTable:
    """All BE subscriptions. A change of any size is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, now: datetime) -> None:
        """The data cluster has started: ids from now on are above all that any copy of this store has given out."""
        first = max(0, int((now - _EPOCH).total_seconds())) << _IDS_PER_SECOND
        with self._database.changing() as connection:
            self._database.raise_ids(connection, "subscriptions", first)

    def attach(self, channel: Channel, broker: str, keys: Sequence[str]) -> list[int]:
        """Let the broker hold the subscriptions of these keys, made where missing; their ids in the keys' order.

        The keys are of the channel's parameters; refused when it has meanwhile been created anew with others.
        """
        with self._database.changing() as connection:
            target, holder = defined_channel(connection, channel), broker_id(connection, broker)
            ids: list[int] = []
            for start in range(0, len(keys), _CHUNK):
                ids += self._ensure_ids(connection, target, keys[start : start + _CHUNK])
            self._choose(connection, ids)
            # In the order of the table, which is what makes a million of them quick.
            connection.execute(
                "INSERT INTO holders SELECT id, CAST(? AS BIGINT) FROM chosen WHERE true ORDER BY id "
                "ON CONFLICT DO NOTHING",
                (holder,),
            )
        return ids

    def detach(self, broker: str, bes: Sequence[int]) -> dict[str, list[int]]:
        """The broker lets go of these; returns, by case-folded channel name, the ones removed as nobody holds them.

        What the broker does not hold is passed over.
        """
        with self._database.changing() as connection:
            holder = broker_id(connection, broker)
            rows: list[tuple[int, int]] = []
            for start in range(0, len(bes), _CHUNK):
                rows += self._release(connection, holder, bes[start : start + _CHUNK])
            names = dict(connection.execute("SELECT id, name FROM definitions").fetchall())
        removed: dict[str, list[int]] = {}
        for channel, be in rows:
            removed.setdefault(names[channel], []).append(be)
        return removed

    def drop(self, channel: str) -> None:
        """Remove all subscriptions of the channel, if there is such a channel."""
        with self._database.changing() as connection:
            remove_subscriptions(connection, channel)

    def find(self, be: int) -> tuple[str, str] | None:
        """The case-folded channel name and the key of a subscription, or None."""
        with self._database.looking() as connection:
            row: tuple[str, str] | None = connection.execute(
                "SELECT d.name, s.key FROM subscriptions s JOIN definitions d ON d.id = s.channel WHERE s.id = ?", (be,)
            ).fetchone()
        return row

    def pages(self, channel: str) -> Iterator[list[tuple[int, str]]]:
        """Ids and keys of all subscriptions of the channel, in the order of their keys, many at a time."""
        after = ""
        while page := self._page(
            "SELECT id, key FROM subscriptions "
            "WHERE channel = (SELECT id FROM definitions WHERE kind = 'channel' AND name = ?) AND key > ? "
            "ORDER BY key LIMIT ?",
            (channel.casefold(), after, _PAGE),
        ):
            yield page
            after = page[-1][1]

    def holdings(self) -> dict[str, npt.NDArray[np.int64]]:
        """What each broker holds, ascending; every registered broker is there."""
        with self._database.looking() as connection:
            names = dict(connection.execute("SELECT id, name FROM brokers").fetchall())
        pairs = [np.empty((0, 2), np.int64)]
        after = (0, 0)
        while page := self._page(
            "SELECT be, broker FROM holders WHERE (be, broker) > (?, ?) ORDER BY be, broker LIMIT ?", (*after, _PAGE)
        ):
            pairs.append(np.fromiter(chain.from_iterable(page), np.int64, 2 * len(page)).reshape(-1, 2))
            after = page[-1]
        bes, brokers = np.concatenate(pairs).T
        return {name: bes[brokers == number] for number, name in names.items()}

    def _page(self, query: str, arguments: tuple[int | str, ...]) -> list[tuple[int, Any]]:
        with self._database.looking() as connection:
            return connection.execute(query, arguments).fetchall()

    def _ensure_ids(self, connection: Connection, channel: int, keys: Sequence[str]) -> list[int]:
        """The ids of the subscriptions of these keys, made where missing."""
        self._database.fill(connection, "wanted", list(enumerate(keys)))
        connection.execute(
            "INSERT INTO subscriptions (channel, key) SELECT CAST(? AS BIGINT), key FROM wanted WHERE true "
            "ORDER BY position ON CONFLICT (channel, key) DO NOTHING",
            (channel,),
        )
        # CROSS JOIN keeps SQLite from walking the channel's whole index for a few keys.
        rows = connection.execute(
            "SELECT s.id FROM wanted w CROSS JOIN subscriptions s WHERE s.channel = ? AND s.key = w.key "
            "ORDER BY w.position",
            (channel,),
        ).fetchall()
        return [be for (be,) in rows]

    def _release(self, connection: Connection, holder: int, bes: Sequence[int]) -> list[tuple[int, int]]:
        """Channel and id of those that are removed, as nobody holds them after this broker let go of them."""
        self._choose(connection, bes)
        connection.execute("DELETE FROM holders WHERE broker = ? AND be IN (SELECT id FROM chosen)", (holder,))
        return connection.execute(
            "DELETE FROM subscriptions WHERE id IN (SELECT id FROM chosen) "
            "AND NOT EXISTS (SELECT 1 FROM holders WHERE be = subscriptions.id) RETURNING channel, id"
        ).fetchall()

    def _choose(self, connection: Connection, bes: Sequence[int]) -> None:
        self._database.fill(connection, "chosen", [(be,) for be in sorted(set(bes))])

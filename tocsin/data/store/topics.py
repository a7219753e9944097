"""Which Kafka topic each feed's log is, and at which position each of its partitions begins."""

from __future__ import annotations

import msgspec

from tocsin.data.store.database import Connection, Database


class KnownTopic(msgspec.Struct, frozen=True):
    """A topic by the id that Kafka gave it, so that one made anew under its name is not taken for it.

    The position after a record is ``bases[partition] + offset + 1``: positions of a feed only ever grow, whichever log
    it had before, and offsets of a topic begin at 0.
    """

    id: str
    bases: list[int]


class Topics:
    """By the name of a feed, letter case aside."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, feed: str) -> KnownTopic | None:
        """The topic that was last known as a feed's log."""
        with self._database.looking() as connection:
            row = connection.execute("SELECT id, bases FROM topics WHERE feed = ?", (feed.casefold(),)).fetchone()
        return KnownTopic(row[0], msgspec.json.decode(row[1], type=list[int])) if row else None

    def put(self, feed: str, topic: KnownTopic) -> None:
        """This is the feed's log from now on."""
        with self._database.changing() as connection:
            connection.execute(
                "INSERT INTO topics VALUES (?, ?, ?) "
                "ON CONFLICT (feed) DO UPDATE SET id = excluded.id, bases = excluded.bases",
                (feed.casefold(), topic.id, msgspec.json.encode(topic.bases).decode()),
            )


def remove_topic(connection: Connection, feed: str) -> None:
    """A feed is no more: a topic of its name is another's."""
    connection.execute("DELETE FROM topics WHERE feed = ?", (feed.casefold(),))

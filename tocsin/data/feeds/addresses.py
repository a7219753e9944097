"""Where a feed's log is, for processes that read it and do not write it."""

from __future__ import annotations

import msgspec


class DirectoryLog(msgspec.Struct, frozen=True, tag="directory"):
    """An embedded log, in a directory that all nodes see under this path."""

    path: str


class TopicLog(msgspec.Struct, frozen=True, tag="topic"):
    """A log in Kafka. ``bases`` are those of the feed's positions; ``record_bytes`` is what a record has, about."""

    servers: str
    topic: str
    bases: list[int]
    record_bytes: float


LogAddress = DirectoryLog | TopicLog

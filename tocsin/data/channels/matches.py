"""What nodes have found in the versions of a dataset, kept until the channels' executions ask for it. Pure."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

MOST_VERSIONS: Final = 256


@dataclass(frozen=True)
class NodeMatch:
    """What a node has found of a channel in the rows of a batch.

    Args:
        tag: of what it has matched with.
        began: when it began to, or later, by this process's monotonic clock.
        files: names of files in the folder of the channel's results; none if it has found nothing.
    """

    channel: str
    tag: str
    began: float
    files: tuple[str, ...]


@dataclass(frozen=True)
class MatchedVersions:
    """All that there is of a channel for some versions; ``complete`` if that is all that can be found in them.

    ``passed_over`` are matches of versions that the channel has seen before.
    """

    matches: Sequence[NodeMatch]
    complete: bool
    passed_over: Sequence[NodeMatch] = ()


class Matches:
    """By table and version, for each batch with records that is part of the version, by channel. From any thread.

    A table is told by the object, as one of the same name that is made anew counts its versions from the beginning.

    What can go wrong: an execution does not ask for a long time (the oldest versions are let go, and what it gets is
    not complete).
    """

    def __init__(self) -> None:
        self._versions: WeakKeyDictionary[Hashable, dict[int, list[dict[str, NodeMatch]]]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def put(self, table: Hashable, version: int, batches: Sequence[Mapping[str, NodeMatch]]) -> list[NodeMatch]:
        """A version is stored, of these batches; what is let go for it."""
        with self._lock:
            versions = self._versions.setdefault(table, {})
            versions[version] = [dict(batch) for batch in batches]
            gone = [versions.pop(old) for old in sorted(versions)[:-MOST_VERSIONS]]
        return [match for version_ in gone for batch in version_ for match in batch.values()]

    def take(self, channel: str, table: Hashable, since: int, until: int) -> MatchedVersions:
        """What there is of a channel after version ``since`` up to ``until``; it is here no more then."""
        with self._lock:
            versions = self._versions.get(table, {})
            complete = since < until and all(version in versions for version in range(since + 1, until + 1))
            old = [batch for version, batches in versions.items() if version <= since for batch in batches]
            new = [batch for version, batches in versions.items() if since < version <= until for batch in batches]
            complete = complete and all(channel in batch for batch in new)
            matches = [batch.pop(channel) for batch in new if channel in batch]
            return MatchedVersions(matches, complete, [batch.pop(channel) for batch in old if channel in batch])

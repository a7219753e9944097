"""Which ids were seen before, at a processing node: those of the dataset, and those of batches in hand.

**The ids that a slice has seen before a position are those of its log before it, whoever asks.** Some are in the
dataset, up to the slice's marker; the rest is in batches that this node has processed from there on. Where the two do
not reach up to the position without a gap, nobody here can know, and it has to be looked at again. So a batch that is
refused is forgotten as soon as a slice of it is read again from an earlier position, and one that counts is in the
dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from tocsin.data.feeds.identity import Hashes, SeenIds, hash_ids, join_halves
from tocsin.data.feeds.ingest import marker
from tocsin.data.feeds.teaching import teach
from tocsin.data.lake.entries import VERSION
from tocsin.data.lake.view import TableView
from tocsin.errors import UnavailableError

Range = tuple[int, int]


@dataclass(frozen=True)
class BatchInHand:
    """What a batch has of each slice, from and to which position, and the ids that it has of them."""

    ranges: Mapping[int, Range]
    ids: frozenset[bytes]


class IdsInHand:
    """The ids of batches that this node has processed and that the dataset may not have yet."""

    def __init__(self) -> None:
        self._batches: list[BatchInHand] = []

    def __contains__(self, key: bytes) -> bool:
        return any(key in batch.ids for batch in self._batches)

    def __len__(self) -> int:
        return len(self._batches)

    def hold(self, batch: BatchInHand) -> None:
        """One more is processed."""
        self._batches.append(batch)

    def begin(self, starts: Mapping[int, int], markers: Mapping[int, int]) -> None:
        """Slices are read from ``starts`` on, and the dataset has them up to ``markers``.

        What was processed beyond is processed anew, and what the dataset has need not be kept. A batch counts whole or
        not at all.
        """
        self._batches = [batch for batch in self._batches if not _is_over(batch, starts, markers)]

    def forget(self, slices: Iterable[int]) -> None:
        """These are somebody else's."""
        gone = set(slices)
        self._batches = [batch for batch in self._batches if not gone & batch.ranges.keys()]

    def reach(self, index: int, position: int) -> int:
        """Up to where a slice is known, if the dataset has it up to ``position``."""
        for begin, end in sorted(batch.ranges[index] for batch in self._batches if index in batch.ranges):
            if begin <= position:
                position = max(position, end)
        return position


def _is_over(batch: BatchInHand, starts: Mapping[int, int], markers: Mapping[int, int]) -> bool:
    undone = any(end > starts.get(index, end) for index, (_, end) in batch.ranges.items())
    return undone or all(end <= markers.get(index, 0) for index, (_, end) in batch.ranges.items())


class KnownIds:
    """All ids that count as seen at this node. To be used by one thread at a time.

    What can go wrong: the dataset as it is seen here is behind (UnavailableError: it is to be tried again); the newest
    commit that was seen is taken back, as the head's disk refused it (its ids are kept apart until another follows).

    Args:
        directory: where ids are kept that the dataset has; of this process alone.
        slices: how many there are.
    """

    def __init__(self, directory: Path, view: TableView, key: str, slices: int) -> None:
        self._seen, self._view, self._key, self._slices = SeenIds(directory), view, key, slices
        self._in_hand = IdsInHand()
        self._newest = _Newest(-1, 0, np.zeros((2, 0), np.uint64), frozenset())

    def follow(self) -> None:
        """Knows all that the dataset has by now."""
        self._view.refresh()
        newest, view = self._newest, self._view
        if (
            newest.history == view.history
            and newest.version <= view.settled
            and self._seen.version + 1 == newest.version
        ):
            self._seen.add_hashes(newest.hashes, newest.version)
        # What was settled once is so, also where the entry that followed it was taken back.
        settled = max(view.settled, min(self._seen.version, view.version))
        teach(self._seen, view, self._key, settled)
        if (newest.history, newest.version) != (view.history, view.version):
            since = view.settled
            ids = view.read(pc.field(VERSION) > since, [self._key], since).column(0)
            hashes = hash_ids(ids.to_pylist())
            self._newest = _Newest(view.history, view.version, hashes, frozenset(split(hashes)))

    def begin(self, starts: Mapping[int, int]) -> None:
        """Slices are read from these positions on: knows all that came before, and nothing of what comes after."""
        self.follow()
        markers = {index: self._view.marker(marker(index)) for index in range(self._slices)}
        self._in_hand.begin(starts, markers)
        for index, start in starts.items():
            reach = self._in_hand.reach(index, markers[index])
            if reach < start:
                raise UnavailableError(
                    f"slice {index} is to be read from position {start}, and is known here up to {reach} only: it is "
                    f"looked at again in a moment; should it stay so, see that this machine sees the lake"
                )

    def unseen(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """For each id whether it is new, also among these."""
        new = self._seen.unseen_hashes(hashes)
        keys = split(hashes)
        for i in np.flatnonzero(new):
            new[i] = keys[i] not in self._newest.ids and keys[i] not in self._in_hand
        return new

    def hold(self, ranges: Mapping[int, Range], hashes: Hashes) -> None:
        """A batch is processed that has these ids."""
        self._in_hand.hold(BatchInHand(dict(ranges), frozenset(split(hashes))))

    def forget(self, slices: Iterable[int]) -> None:
        """These slices are somebody else's."""
        self._in_hand.forget(slices)


@dataclass(frozen=True)
class _Newest:
    """The ids of the newest version of the dataset, which may still be taken back."""

    history: int
    version: int
    hashes: Hashes
    ids: frozenset[bytes]


def split(hashes: Hashes) -> list[bytes]:
    """Each hash by itself."""
    keys = join_halves(hashes)
    return [keys[i : i + 16] for i in range(0, len(keys), 16)]

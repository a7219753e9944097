"""A feed's log and dataset as a model: what publishers have sent, which files there are, and which of them count."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tocsin.slices.messages import Commit, Epoch, SlicePart


class SlicedLog(Protocol):
    """A log that nodes read; positions count records."""

    @property
    def slices(self) -> int:
        """How many slices it has."""

    def end(self, slice_: int, now: float) -> int:
        """Up to where a slice has something to be read."""

    def new_records(self, part: SlicePart) -> Iterable[tuple[int, int]]:
        """What a node writes of it: slice and id of each record that was not there before, as far as they are known.

        One that was sent again is dropped by whoever processes it: the ids seen are those of the log before.
        """


class RecordedLog:
    """A log of single records, each with its id."""

    def __init__(self, slices: int) -> None:
        self.slices = slices
        self.records: list[list[int]] = [[] for _ in range(slices)]
        self._times: list[list[float]] = [[] for _ in range(slices)]
        self._first: list[dict[int, int]] = [{} for _ in range(slices)]

    def append(self, slice_: int, now: float, record: int) -> None:
        """A record is accepted."""
        self._first[slice_].setdefault(record, len(self.records[slice_]))
        self.records[slice_].append(record)
        self._times[slice_].append(now)

    def end(self, slice_: int, now: float) -> int:
        """Up to where a slice has something to be read."""
        return bisect_right(self._times[slice_], now)

    def new_records(self, part: SlicePart) -> list[tuple[int, int]]:
        """The records that were not there before."""
        records, first = self.records[part.slice], self._first[part.slice]
        return [(part.slice, records[at]) for at in range(part.begin, part.end) if first[records[at]] == at]


class FencedError(Exception):
    """A head of a later term has begun; this one can store nothing any more."""


class MissingFileError(Exception):
    """A file that was offered is not there; nothing was stored."""


@dataclass(frozen=True)
class WrittenFile:
    """What a node has written: per slice the positions it has read, and the records that it found worth keeping."""

    records: tuple[tuple[int, int], ...]


class SimulatedDataset:
    """The dataset: files that nodes have written, and those that a commit has made count, with the markers.

    ``overtaken`` says where somebody has committed after a later owner had.
    """

    def __init__(self, slices: int) -> None:
        self.markers = [0] * slices
        self.rows: list[tuple[int, int]] = []
        self.versions = 0
        self.files: dict[str, WrittenFile] = {}
        self.overtaken: list[str] = []
        self._term = 0
        self._epochs = [Epoch(0, 0)] * slices

    def begin_term(self) -> int:
        """The term of a head that starts; those before it cannot store any more."""
        self._term += 1
        return self._term

    def store(self, term: int, commits: Sequence[Commit], markers: dict[int, int]) -> None:
        """One commit, whole or not at all."""
        if term < self._term:
            raise FencedError
        if missing := [name for commit in commits for name in commit.files if name not in self.files]:
            raise MissingFileError(f"{missing[0]} is not there")
        self.versions += 1
        for commit in commits:
            for name in commit.files:
                self.rows += self.files[name].records
            for part in commit.parts:
                if part.epoch < self._epochs[part.slice]:
                    self.overtaken.append(f"slice {part.slice}: {part.epoch} after {self._epochs[part.slice]}")
                self._epochs[part.slice] = part.epoch
        for slice_, position in markers.items():
            self.markers[slice_] = position

    def discard(self, name: str) -> None:
        """A file that will never count."""
        self.files.pop(name, None)

"""A feed whose log, files and dataset are in memory, for heads and nodes that are real."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tocsin.data.compiler.check import Compiled
from tocsin.data.feeds.addresses import DirectoryLog
from tocsin.data.lake.address import LakeAddress
from tocsin.data.nodes.channels import NodeChannel, SubscriptionFiles
from tocsin.data.nodes.processing import ProcessedBatch, ProcessedPart
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.data.sharing.heads import FeedToShare
from tocsin.errors import InvalidError, StorageError, UnavailableError
from tocsin.schema.definitions import Channel, ChannelKind, Column, Dataset, DatasetKind, Feed
from tocsin.schema.types import parse_type
from tocsin.slices.actions import StoreCommits
from tocsin.slices.messages import Commit

SLICES: Final = 4
_MOST: Final = 20


def node_channel(name: str, tag: str) -> NodeChannel:
    """A channel as nodes are told it; nobody could match it."""
    channel = Channel(name, ChannelKind.CONTINUOUS, (), "SELECT 1")
    compiled = Compiled(channel, "SELECT 1", frozenset(), frozenset({"Reports"}), True, (), True)
    return NodeChannel(tag, compiled, [], SubscriptionFiles(1, 1))


@dataclass
class MemoryFeed:
    """A log of numbered records, files by their names, and the rows of a dataset with its markers.

    ``refusing`` is raised by whatever is stored next; if it is ``faulty``, what is stored seems to fail afterwards.
    While it is ``unreachable``, nobody can tell whether files are there.
    """

    name: str = "reports"
    log: list[list[int]] = field(default_factory=lambda: [[] for _ in range(SLICES)])
    files: dict[str, list[int]] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    marked: list[int] = field(default_factory=lambda: [0] * SLICES)
    commits: int = 0
    refusing: Exception | None = None
    unreachable: bool = False
    faulty: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    _published: int = 0
    _written: int = 0

    def publish(self, count: int, slice_: int | None = None) -> None:
        """So many records, to one slice or in turn to all."""
        for _ in range(count):
            self.log[self._published % SLICES if slice_ is None else slice_].append(self._published)
            self._published += 1

    @property
    def published(self) -> list[int]:
        """All records."""
        return list(range(self._published))

    @property
    def is_stored(self) -> bool:
        """Whether the dataset has them all, each once."""
        with self.lock:
            return sorted(self.rows) == self.published

    def write(self, rows: list[int]) -> str:
        """A file."""
        with self.lock:
            self._written += 1
            name = f"file-{self._written}"
            self.files[name] = rows
        return name

    def markers(self) -> list[int]:
        """Up to where the dataset has each slice."""
        return list(self.marked)

    def ends(self) -> list[int]:
        """Up to where the log has each slice."""
        return [len(records) for records in self.log]

    def check(self, commit: Commit) -> None:
        """As a store does."""
        if self.unreachable:
            raise UnavailableError("the store does not answer")
        if any(part.end > len(self.log[part.slice]) for part in commit.parts):
            raise InvalidError("a part ends beyond what the log has")
        if any(file not in self.files for file in commit.files):
            raise InvalidError("a file is offered that is not there")

    def store(self, wanted: StoreCommits) -> None:
        """One commit."""
        if self.refusing is not None:
            raise self.refusing
        with self.lock:
            if gone := [file for commit in wanted.commits for file in commit.files if file not in self.files]:
                raise StorageError(f"{gone[0]} is not there as it was written")
            for commit in wanted.commits:
                for part in commit.parts:
                    if part.begin != self.marked[part.slice]:
                        raise StorageError("a part does not begin at its marker")
                    self.marked[part.slice] = part.end
                for file in commit.files:
                    self.rows += self.files[file]
            self.commits += 1
        if self.faulty:
            raise RuntimeError("a fault after all was done")

    def share(self, work: MemoryWork | None = None, unable: list[str] | None = None) -> FeedToShare:
        """As heads are told of it; ``unable`` says, while there is something in it, why nothing can process it here."""
        columns = (Column("id", parse_type("STRING")),)
        dataset = Dataset(self.name.capitalize(), DatasetKind.APPEND, columns, "id")
        feed = Feed(self.name, dataset.name, "id", SLICES)
        shared = SharedFeed(feed, dataset, DirectoryLog("/nowhere"), LakeAddress("/nowhere"), 1 << 20)

        def make_work() -> MemoryWork:
            if unable:
                raise InvalidError(unable[0])
            return work or MemoryWork(self)

        return FeedToShare(shared, self, lambda: None, make_work)


@dataclass
class MemoryWork:
    """Processes slices of such a feed; every call is made by another thread than the event loop's."""

    feed: MemoryFeed
    failing: str = ""
    unprepared: str = ""
    prepared: set[int] = field(default_factory=set)
    batches: int = 0
    preparing: bool = False
    waiting: bool = False
    warm: threading.Event = field(default_factory=threading.Event)
    going_on: threading.Event = field(default_factory=threading.Event)
    channels: dict[str, str] = field(default_factory=dict)
    closed: int = 0
    cancellable: bool = False

    def __post_init__(self) -> None:
        self.warm.set()
        self.going_on.set()

    def prepare(self, slices: Collection[int]) -> None:
        self.preparing = True
        self.warm.wait(60)
        if self.unprepared:
            raise UnavailableError(self.unprepared)
        self.prepared |= set(slices)

    def forget(self, slices: Collection[int]) -> None:
        self.prepared -= set(slices)

    def process(self, starts: Mapping[int, int]) -> ProcessedBatch:
        assert self.prepared >= starts.keys(), "only what was prepared is processed"
        self.waiting = not self.going_on.is_set()
        self.going_on.wait(60)
        if self.failing:
            raise UnavailableError(self.failing)
        parts, rows = [], []
        for slice_, begin in starts.items():
            taken = self.feed.log[slice_][begin : begin + _MOST]
            if taken:
                parts.append(ProcessedPart(slice_, begin, begin + len(taken), len(taken)))
                rows += taken
        self.batches += bool(parts)
        return ProcessedBatch(parts, [self.feed.write(rows)] if rows else [])

    def learn(self, channels: Collection[NodeChannel]) -> None:
        self.channels = {channel.name: channel.tag for channel in channels}

    def close(self) -> None:
        self.closed += 1

    def backlog(self, starts: Mapping[int, int]) -> dict[int, int]:
        return {slice_: 100 * (len(self.feed.log[slice_]) - start) for slice_, start in starts.items()}

    def cancel(self) -> None:
        if self.cancellable:
            self.failing = "it was given up"
            self.going_on.set()

    def discard(self, files: Sequence[str]) -> None:
        with self.feed.lock:
            for file in files:
                self.feed.files.pop(file, None)

"""From the log into the dataset: a processing node and its head beside ingestion as one process does it, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tocsin.bench.data.bench import APPLICATION
from tocsin.bench.data.ingestion import bodies
from tocsin.bench.report import Figure, median
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.ingest import DEAD_LETTERS, Ingestion, positions
from tocsin.data.feeds.log import FeedLog
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.table import Table
from tocsin.data.language.forms import CreateDataset
from tocsin.data.language.parser import parse
from tocsin.data.nodes.processing import SliceProcessing
from tocsin.data.nodes.sharing import share
from tocsin.data.nodes.storing import CommitStore
from tocsin.schema.arrow import record_schema
from tocsin.schema.definitions import Dataset, Feed
from tocsin.settings import FeedsSettings
from tocsin.slices.actions import StoreCommits
from tocsin.slices.assignment import slice_by_hash
from tocsin.slices.messages import Commit, Epoch, SlicePart

_GROUP: Final = "log to dataset, 500 B records, in turns"
_RECORDS: Final = 200_000
_TURNS: Final = 3
_LOOK_SECONDS: Final = 0.005


class BenchFeed:
    """A feed and its dataset in a directory, whose log is filled before it is read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.dataset = _reports()
        self.feed = Feed("reports", self.dataset.name, "id", 16)
        self.table = Table(directory / "datasets" / self.dataset.name, record_schema(self.dataset.columns))
        self.dead_letters = Table(directory / "dead-letters" / "reports", DEAD_LETTERS)
        self.log = FeedLog(directory / "feeds" / "reports", self.feed.slices, 64 << 20).open()

    def fill(self, records: int, seed: int) -> None:
        """Appends records, a thousand at a time."""
        for body in bodies(records // 1000, seed):
            slices: dict[int, list[bytes]] = {}
            for line in body.split(b"\n"):
                slices.setdefault(slice_by_hash(line[7:30].split(b'"')[0].decode(), self.feed.slices), []).append(line)
            self.log.append(slices)

    @property
    def is_stored(self) -> bool:
        """Whether the dataset has all of the log."""
        return positions(self.table, self.feed) == self.log.ends()


def nodes(
    spark: SparkSession, directory: Path, say: Callable[[str], None], records: int = _RECORDS, turns: int = _TURNS
) -> list[Figure]:
    """Records per second of ingestion, and of one node, here and with files written by executors."""
    ways: dict[str, Callable[[SparkSession, BenchFeed], float]] = {
        "ingestion, one process": _ingest,
        "a node, rows through its process": lambda spark, feed: _node(spark, feed, by_executors=False),
        "a node, files by executors": lambda spark, feed: _node(spark, feed, by_executors=True),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for number, (name, way) in enumerate(ways.items()):
            say(f"{name}, turn {turn} of {turns}")
            feed = BenchFeed(directory / f"{number}-{turn}")
            count = records if turn else min(records, 20_000)
            feed.fill(count, turn)
            rates[name].append(count / way(spark, feed))
            feed.log.close()
    medians = {name: median(found[1:]) for name, found in rates.items()}
    first = next(iter(medians.values()))
    return [
        Figure(_GROUP, name, rate, "records/s", rate / first, "ingestion" if number else "")
        for number, (name, rate) in enumerate(medians.items())
    ]


def _ingest(spark: SparkSession, feed: BenchFeed) -> float:
    ingestion = Ingestion(
        spark,
        feed.feed,
        feed.dataset,
        feed.table,
        feed.dead_letters,
        feed_log=feed.log,
        scratch=feed.directory,
        seen=SeenIds(feed.directory / "ids"),
        settings=FeedsSettings(),
        committed=lambda: None,
    )
    began = time.perf_counter()
    ingestion.start()
    while not feed.is_stored:
        time.sleep(_LOOK_SECONDS)
    seconds = time.perf_counter() - began
    ingestion.stop()
    return seconds


def _node(spark: SparkSession, feed: BenchFeed, by_executors: bool) -> float:
    shared = share(feed.feed, feed.dataset, feed.log, DirectoryFolder(feed.directory), FeedsSettings().max_batch_bytes)
    store = CommitStore(shared, feed.table, feed.dead_letters, feed.log)
    began = time.perf_counter()
    processing = SliceProcessing(spark, shared, feed.directory / "ids", by_executors=by_executors)
    number = 0
    while (batch := processing.process(dict(enumerate(store.markers())))).parts:
        number += 1
        parts = [SlicePart(part.slice, Epoch(1, 1), part.begin, part.end, part.records) for part in batch.parts]
        commit = Commit(number, parts, list(batch.files))
        store.check(commit)
        store.store(StoreCommits(number, 1, [commit], {part.slice: part.end for part in parts}))
    seconds = time.perf_counter() - began
    processing.close()
    assert feed.is_stored
    return seconds


def _reports() -> Dataset:
    return next(each.definition for each in parse(APPLICATION) if isinstance(each, CreateDataset))

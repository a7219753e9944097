"""A feed that nodes share: its log, its dataset, the head's store, and nodes that process slices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.data.disk import Disk
from tocsin.data.feeds.ingest import DEAD_LETTERS
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.feeds.source import LogRange, read_ranges
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import Table
from tocsin.data.language.parser import CreateDataset, parse
from tocsin.data.nodes.channels import MatchingLimits
from tocsin.data.nodes.processing import ProcessedBatch, SliceProcessing
from tocsin.data.nodes.sharing import FunctionLimits, SharedFeed, share
from tocsin.data.nodes.storing import CommitStore, Matched
from tocsin.data.nodes.writing import WrittenRows, first_of
from tocsin.schema.arrow import record_schema
from tocsin.schema.definitions import Dataset, Feed
from tocsin.slices.actions import StoreCommits
from tocsin.slices.assignment import slice_by_hash
from tocsin.slices.messages import Commit, Epoch, SlicePart

APPEND = "CREATE DATASET Reports (id STRING, value BIGINT) PRIMARY KEY id"
UNKEYED = "CREATE DATASET Reports (id STRING, value BIGINT)"
FUNCTIONS = "tests.data.processing.functions"
KEYED = "CREATE KEYED DATASET Reports (id STRING, value BIGINT) PRIMARY KEY id"


def dataset_of(statement: str) -> Dataset:
    """What a CREATE DATASET statement defines."""
    (parsed,) = parse(statement)
    assert isinstance(parsed, CreateDataset)
    return parsed.definition


class Sharing:
    """What a head has of a shared feed, and what publishers do to it."""

    def __init__(
        self,
        directory: Path,
        statement: str = APPEND,
        slices: int = 4,
        max_batch_bytes: int = 1 << 20,
        lake: Folder | None = None,
        function: str = "",
        function_seconds: float = 60.0,
        matching: MatchingLimits = MatchingLimits(),  # noqa: B008
        matched: Matched = lambda _table, _version, _batches: None,
    ) -> None:
        self.directory, self.dataset = directory, dataset_of(statement)
        self.lake = lake or DirectoryFolder(directory / "lake", Disk(sync=False))
        self.feed = Feed("reports", self.dataset.name, "id", slices, processed_by=function)
        self.limits = FunctionLimits(function_seconds)
        self.log: PublicationLog = FeedLog(directory / "feeds" / "reports", slices, 4096).open()
        self.max_batch_bytes, self.matching, self.matched = max_batch_bytes, matching, matched
        self._numbers = count(1)
        self.open()

    def open(self) -> None:
        """What a head finds when it starts."""
        self.table = Table(self.lake.below("datasets/Reports"), record_schema(self.dataset.columns))
        self.letters = Table(self.lake.below("dead-letters/reports"), DEAD_LETTERS)
        self.shared: SharedFeed = share(
            self.feed, self.dataset, self.log, self.lake, self.max_batch_bytes, self.matching, function=self.limits
        )
        self.store = CommitStore(self.shared, self.table, self.letters, self.log, self.matched)

    def publish(self, *records: dict[str, Any]) -> None:
        """Appends records in the slices of their ids."""
        self.publish_lines(*((str(record["id"]), json.dumps(record).encode()) for record in records))

    def publish_lines(self, *lines: tuple[str, bytes]) -> None:
        """Appends lines, each in the slice of an id."""
        slices: dict[int, list[bytes]] = {}
        for name, line in lines:
            slices.setdefault(slice_by_hash(name, self.feed.slices), []).append(line)
        self.log.append(slices)

    def slice_of(self, name: str) -> int:
        return slice_by_hash(name, self.feed.slices)

    def starts(self, *slices: int) -> dict[int, int]:
        """Where the dataset has got to, of some slices or of all."""
        markers = self.store.markers()
        return {index: markers[index] for index in slices or range(self.feed.slices)}

    def commit(self, *batches: ProcessedBatch) -> None:
        """Checks and stores what nodes offer, as one commit."""
        commits = [offer(batch) for batch in batches]
        for each in commits:
            self.store.check(each)
        markers = {part.slice: part.end for each in commits for part in each.parts}
        self.store.store(StoreCommits(next(self._numbers), 1, commits, markers))

    def rows(self) -> dict[str, int]:
        """The dataset, whose ids must differ."""
        found = self.table.read(columns=["id", "value"]).to_pylist()
        assert len({row["id"] for row in found}) == len(found)
        return {row["id"]: row["value"] for row in found}


def offer(batch: ProcessedBatch) -> Commit:
    """What a node says to the head."""
    parts = [SlicePart(part.slice, Epoch(1, 1), part.begin, part.end, part.records) for part in batch.parts]
    return Commit(1, parts, list(batch.files))


class PlainProcessing(SliceProcessing):
    """A node's processing with Python in Spark's place, for tests of everything around it."""

    def __init__(self, shared: SharedFeed, ids: Path) -> None:
        super().__init__(None, shared, ids, by_executors=True)  # type: ignore[arg-type]
        # There are neither executors to ask, nor is there anything to warm up.
        self._by_executors, self._warm = False, True

    def _attempt(self, ranges: Sequence[LogRange]) -> list[WrittenRows]:
        path = Path(self.shared.log.path)  # type: ignore[union-attr]
        found = [row for batch in read_ranges(path, ranges) for row in batch.to_pylist()]
        return [self._sorter.write(computed(self.shared.dataset, found), self._ids.unseen if self._ids else first_of)]


def computed(dataset: Dataset, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """What Spark computes of lines."""
    fields = [*record_schema(dataset.columns), pa.field("__corrupt", pa.string())]
    parsed = [_parsed(row["line"]) for row in rows]
    return pa.table(
        {
            "__slice": pa.array([row["slice"] for row in rows], pa.int32()),
            "__position": pa.array([row["position"] for row in rows], pa.int64()),
            "__damage": pa.array([row["damage"] for row in rows], pa.string()),
            "__raw": pa.array([row["line"] if row["damage"] else None for row in rows], pa.string()),
            "__row": pa.array(parsed, pa.struct(fields)),
        }
    )


def _parsed(line: str | None) -> dict[str, Any]:
    try:
        found = json.loads(line or "{}")
    except ValueError:
        return {"__corrupt": line}
    return {"id": found.get("id"), "value": found.get("value")}


def on_spark(
    spark: SparkSession,
    sharing: Sharing,
    name: str = "a",
    by_executors: bool = False,
    functions: Sequence[str] = (FUNCTIONS,),
) -> SliceProcessing:
    """A node on real Spark, which may run the functions of tests."""
    ids = sharing.directory / f"ids-{name}"
    return SliceProcessing(spark, sharing.shared, ids, by_executors=by_executors, functions=functions)

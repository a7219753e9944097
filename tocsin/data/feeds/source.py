"""The feed log as Spark reads it: a batch between two positions of each slice, or a Structured Streaming source.

Spark runs readers in processes of its own, so all they know of the log is its path. Where to begin is told by the
markers of the dataset; Spark's own checkpoint is thrown away at every start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from tocsin.data.feeds.batch import bounded_ends
from tocsin.data.feeds.quarantine import quarantine
from tocsin.data.feeds.reader import Damage, durable_ends, read

FORMAT = "tocsin-feed"
SCHEMA = "slice INT, position BIGINT, line STRING, damage STRING"
# Below this, a second task costs more than it saves.
TASK_BYTES = 1024 * 1024
ARROW = pa.schema([("slice", pa.int32()), ("position", pa.int64()), ("line", pa.string()), ("damage", pa.string())])

LogRange = tuple[int, int, int]
"""A slice, and the positions from and up to which it is read."""


class FeedSource(DataSource):
    """Options: ``path`` of the log, ``positions`` to begin at (a JSON list), ``maxBytes`` of a micro-batch,
    ``readers`` at the same time."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return FeedReader(
            Path(self.options["path"]),
            json.loads(self.options["positions"]),
            int(self.options["maxBytes"]),
            int(self.options["readers"]),
        )


class LogRanges(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: Sequence[LogRange]) -> None:
        self.ranges = list(ranges)


class FeedReader(DataSourceStreamReader):
    """Plans and reads micro-batches. An offset is a map from slice to position, as Spark stores it."""

    def __init__(self, path: Path, positions: list[int], max_bytes: int, readers: int) -> None:
        self._path, self._max_bytes, self._readers = path, max_bytes, readers
        self._begin = list(positions)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return _offset(self._begin)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802
        ends = durable_ends(self._path)
        return _offset(bounded_ends(self._path, _positions(start), ends, self._max_bytes))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        ranges = ranges_between(_positions(start), _positions(end))
        return [LogRanges(part) for part in divide_ranges(ranges, self._readers)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogRanges)
        return read_ranges(self._path, partition.ranges)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: the dataset's commit is the record of progress."""


class TaskReader:
    """Reads the ranges of the tasks whose numbers it is given; runs in the executors."""

    def __init__(self, path: Path, tasks: Sequence[Sequence[LogRange]]) -> None:
        self._path, self._tasks = path, tasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_ranges(self._path, self._tasks[number])


def ranges_between(starts: Sequence[int], ends: Sequence[int]) -> list[LogRange]:
    """What lies between positions of all slices."""
    pairs = enumerate(zip(starts, ends, strict=True))
    return [(index, first, last) for index, (first, last) in pairs if last > first]


def divide_ranges(ranges: Sequence[LogRange], readers: int) -> list[list[LogRange]]:
    """What each of some tasks reads, at least one and at most as many as there are readers."""
    share = sum(last - first for _, first, last in ranges) // TASK_BYTES + 1
    tasks = max(min(readers, len(ranges), share), 1)
    return [list(ranges[task::tasks]) for task in range(tasks)]


def read_ranges(path: Path, ranges: Sequence[LogRange]) -> Iterator[pa.RecordBatch]:
    """The records of the log at ``path``, and what is damaged of it, as rows."""
    for index, start, end in ranges:
        for entry in read(path, index, start, end):
            if isinstance(entry, Damage):
                kept = quarantine(path, entry)
                yield _batch(index, entry.position, [None], f"{entry}; the segment was copied to {kept}")
            else:
                yield _batch(index, entry.position, entry.records, None)


def _batch(index: int, position: int, lines: Sequence[bytes | None], damage: str | None) -> pa.RecordBatch:
    rows = len(lines)
    columns = [
        pa.repeat(pa.scalar(index, pa.int32()), rows),
        pa.repeat(pa.scalar(position, pa.int64()), rows),
        pa.array(lines, pa.string()),
        pa.repeat(pa.scalar(damage, pa.string()), rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW)


def _offset(positions: Sequence[int]) -> dict[str, int]:
    return {str(index): position for index, position in enumerate(positions)}


def _positions(offset: dict[str, int]) -> list[int]:
    return [offset[str(index)] for index in range(len(offset))]

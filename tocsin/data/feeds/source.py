"""The feed log as a Structured Streaming source: one offset per slice.

Spark runs the reader in processes of its own, so all it knows of the log is its path. Where to begin is told by the
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
_TASK_BYTES = 1024 * 1024
_ARROW = pa.schema([("slice", pa.int32()), ("position", pa.int64()), ("line", pa.string()), ("damage", pa.string())])


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
    """What one task reads: ranges ``(slice, start, end)`` of the log."""

    def __init__(self, ranges: Sequence[tuple[int, int, int]]) -> None:
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
        ranges = [
            (index, first, last)
            for index, (first, last) in enumerate(zip(_positions(start), _positions(end), strict=True))
            if last > first
        ]
        share = sum(last - first for _, first, last in ranges) // _TASK_BYTES + 1
        tasks = max(min(self._readers, len(ranges), share), 1)
        return [LogRanges(ranges[task::tasks]) for task in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogRanges)
        for index, start, end in partition.ranges:
            for entry in read(self._path, index, start, end):
                if isinstance(entry, Damage):
                    kept = quarantine(self._path, entry)
                    yield _batch(index, entry.position, [None], f"{entry}; the segment was copied to {kept}")
                else:
                    yield _batch(index, entry.position, entry.records, None)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: the dataset's commit is the record of progress."""


def _batch(index: int, position: int, lines: Sequence[bytes | None], damage: str | None) -> pa.RecordBatch:
    rows = len(lines)
    columns = [
        pa.repeat(pa.scalar(index, pa.int32()), rows),
        pa.repeat(pa.scalar(position, pa.int64()), rows),
        pa.array(lines, pa.string()),
        pa.repeat(pa.scalar(damage, pa.string()), rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def _offset(positions: Sequence[int]) -> dict[str, int]:
    return {str(index): position for index, position in enumerate(positions)}


def _positions(offset: dict[str, int]) -> list[int]:
    return [offset[str(index)] for index in range(len(offset))]

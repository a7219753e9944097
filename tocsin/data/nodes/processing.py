"""One feed at a processing node: its slices read, checked and written with Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from tocsin.data.feeds.access import OPEN, KafkaAccess
from tocsin.data.feeds.checking import check_lines
from tocsin.data.feeds.ingest import marker
from tocsin.data.feeds.metering import FEWER, SurplusError, is_surplus
from tocsin.data.feeds.parsing import expressions
from tocsin.data.feeds.source import ARROW, SCHEMA, LogRange
from tocsin.data.lake import frames
from tocsin.data.lake.view import TableView
from tocsin.data.nodes import files
from tocsin.data.nodes.channels import NodeChannel
from tocsin.data.nodes.files import NodeFile
from tocsin.data.nodes.functions import NodeFunction
from tocsin.data.nodes.ids import KnownIds
from tocsin.data.nodes.matching import NodeMatching
from tocsin.data.nodes.reaching import require_executors, require_lake
from tocsin.data.nodes.reading import open_slices
from tocsin.data.nodes.sharing import SharedFeed, require_shareable
from tocsin.data.nodes.writing import REPORT, RowDropper, RowSorter, WrittenRows, first_of, read_report
from tocsin.data.processing.stage import unavailable_told
from tocsin.data.reasons import reason_of
from tocsin.data.session import is_local
from tocsin.errors import StorageError, TocsinError, UnavailableError
from tocsin.log import get_logger
from tocsin.schema.arrow import record_schema

log = get_logger(__name__)


@dataclass(frozen=True)
class ProcessedPart:
    """What a batch has of a slice: the records between two positions of its log, and how many they are."""

    slice: int
    begin: int
    end: int
    records: int


@dataclass(frozen=True)
class ProcessedBatch:
    """A batch that is written and durable; without parts, there was nothing to read.

    ``files`` are for the head: :func:`tocsin.data.nodes.files.decode` tells what they mean.
    """

    parts: Sequence[ProcessedPart]
    files: Sequence[str]


class SliceProcessing:
    """Processes slices of one feed. Its calls block, and may be made from any thread; ``process`` by one at a time.

    What it gives counts when the head has committed it, and may be thrown away at any time: where a slice goes on is
    told by the positions that ``process`` is given, and by nothing else. They may go back: what came after them is
    forgotten then.

    What can go wrong: the log or the dataset cannot be reached, or does not show yet what the positions rest on
    (UnavailableError; the same call may be made again in a moment); the storage refuses (StorageError; nothing is left
    that counts, and what was half written is removed after a while by the head).

    Args:
        spark: the node's own; several feeds may use one.
        ids: a directory of the node's own for the ids seen; what is in it may be deleted while no process runs.
        by_executors: whether the files are written where Spark computes, and only their names come here. On a cluster
            it is always so; with a local master the rows come here, which is shorter.
        kafka: for a log that is there.
        functions: the modules that a feed's function may be of. InvalidError is raised where it is of none of them, or
            cannot be imported.
    """

    def __init__(
        self,
        spark: SparkSession,
        shared: SharedFeed,
        ids: Path,
        *,
        by_executors: bool = False,
        kafka: KafkaAccess = OPEN,
        functions: Sequence[str] = (),
    ) -> None:
        require_shareable(shared.feed, shared.dataset)
        self.shared = shared
        self._spark, self._by_executors = spark, by_executors or not is_local(spark)
        self._log = open_slices(shared.log, kafka, self._by_executors)
        self._lake = shared.folder
        self._table = self._lake.below(shared.table)
        self._lake_seen = self._warm = False
        # Of the last batch, where rows come to this process.
        self._row_bytes = 0
        self._jobs = f"slices-{shared.feed.name}-{id(self)}"
        self._sorter = RowSorter(shared, self._lake)
        self._function = NodeFunction(shared, self._lake, list(functions)) if shared.feed.processed_by else None
        self._ids = self._known_ids(ids)
        self._matching = NodeMatching(spark, shared, self._by_executors)
        # Of the ids, and of what is written: the log may be asked by anybody at any time.
        self._lock = threading.Lock()

    def prepare(self, slices: Iterable[int]) -> None:
        """Makes it possible to process these slices at once: reads what the dataset has, finds the log, and the lake.

        May take long at the first time: where the dataset is large, and since Spark does then on nothing what it does
        with every batch. Nothing is processed.
        """
        self._log.require(list(slices))
        self._require_lake()
        with self._lock:
            if self._ids is not None:
                self._ids.follow()
            if not self._warm:
                self._warm_up()

    def forget(self, slices: Iterable[int]) -> None:
        """Lets go of what was kept for these slices: somebody else goes on with them."""
        if self._ids is not None:
            with self._lock:
                self._ids.forget(slices)

    @property
    def channels(self) -> list[str]:
        """The names of the channels that it matches with what it reads."""
        return self._matching.ready

    def learn(self, channels: Collection[NodeChannel]) -> None:
        """These channels are matched with what is read from now on, and no others; does not block."""
        self._matching.learn(channels)

    def close(self) -> None:
        """Lets go of views and threads, after the last batch."""
        self._matching.close()

    def process(self, starts: Mapping[int, int]) -> ProcessedBatch:
        """Reads slices from these positions on, about ``max_batch_bytes`` in fair shares, and writes what they bring.

        Records that fit are in files of the dataset's, those that do not in files of the dead letters', and those
        whose ids were seen before in none. What channels find in them, if that is known soon, is in files of results.
        """
        while True:
            try:
                return self._process(starts)
            except SurplusError as error:
                log.info(FEWER, feed=self.shared.feed.name, reason=str(error))

    def _process(self, starts: Mapping[int, int]) -> ProcessedBatch:
        pace = self._function.pace if self._function is not None else None
        ranges = self._log.ranges(starts, pace.max_bytes if pace is not None else self.shared.max_batch_bytes)
        if not ranges:
            return ProcessedBatch((), ())
        began = time.monotonic()
        with self._lock:
            if self._ids is not None:
                self._ids.begin({index: begin for index, begin, _ in ranges})
            try:
                written = self._attempt(ranges)
            except BaseException:
                self._matching.abandon()
                self._log.failed()
                raise
            if self._ids is not None:
                hashes = (
                    np.concatenate([part.hashes for part in written], axis=1) if written else np.zeros((2, 0), "<u8")
                )
                self._ids.hold({index: (begin, end) for index, begin, end in ranges}, hashes)
        if pace is not None:
            pace.took(self._log.size(ranges), time.monotonic() - began)
        counts = {index: sum(part.counts.get(index, 0) for part in written) for index, _, _ in ranges}
        self._log.took(self._row_bytes)
        return ProcessedBatch(
            [ProcessedPart(index, begin, end, counts[index]) for index, begin, end in ranges],
            [files.encode(file) for file in [*(f for part in written for f in part.files), *self._matching.finish()]],
        )

    def backlog(self, starts: Mapping[int, int]) -> dict[int, int]:
        """How many bytes wait in the log after each of these positions; does not wait for a batch that is processed."""
        return self._log.backlog(starts)

    def cancel(self) -> None:
        """Ends what Spark does for the batch at hand, which fails by that, if there is a function.

        That may take its time, and what it does now is done again by the next who begins at the markers.
        """
        if self._function is not None:
            self._spark.sparkContext.cancelJobGroup(self._jobs)

    def discard(self, files_: Iterable[str]) -> None:
        """Removes files that the head was never told of."""
        for text in files_:
            file = files.decode(text)
            if file.path:
                folder = self.shared.folder_of(file)
                with suppress(OSError):
                    self._lake.below(folder).delete(files.name_in(folder, file))

    def _require_lake(self) -> None:
        """Raises StorageError unless whoever writes for this node may do so: who cannot says so at once."""
        if not self._lake_seen:
            require_lake(self._table, self.shared.dataset.name)
            if self._by_executors:
                require_executors(self._spark, self._table)
            self._lake_seen = True

    def _warm_up(self) -> None:
        """Has Spark do with a line that is no record what it does with a batch. Its first takes it seconds, for which
        a slice that has come from another node would pause."""
        line = pa.table({"slice": [0], "position": [0], "line": ["no record"], "damage": [None]}, schema=ARROW)
        try:
            rows = self._process_lines(self._log.nothing(self._spark).union(frames.in_one_piece(self._spark, line)), {})
            for written in self._write(rows):
                self.discard(map(files.encode, written.files))
        except Exception as error:
            # Whatever it is, the first batch will tell.
            log.debug("a node could not warm up", feed=self.shared.feed.name, reason=str(error))
        else:
            self._warm = True

    @cached_property
    def _parsing(self) -> list[Column]:
        return expressions(self.shared.dataset, whole_lines=self._function is not None)

    def _known_ids(self, directory: Path) -> KnownIds | None:
        dataset, slices = self.shared.dataset, self.shared.feed.slices
        if dataset.primary_key is None:
            return None
        names = [marker(index) for index in range(slices)]
        view = TableView(self._table, record_schema(dataset.columns), names)
        try:
            return KnownIds(directory, view, dataset.primary_key, slices)
        except OSError as error:
            raise StorageError(
                f"the ids seen cannot be kept in {directory} ({error.strerror}): make the directory writable"
            ) from error

    def _attempt(self, ranges: Sequence[LogRange]) -> list[WrittenRows]:
        """What is written of a part of the log; what Spark, Kafka or the disk refuse is told as ours."""
        try:
            with unavailable_told():
                self._spark.sparkContext.setJobGroup(self._jobs, self._jobs)
                lines = self._log.lines(self._spark, ranges)
                return self._write(self._process_lines(lines, {index: begin for index, begin, _ in ranges}))
        except TocsinError:
            raise
        except Exception as error:
            reason = reason_of(error)
            if is_surplus(error):
                raise SurplusError(reason) from error
            if isinstance(error, OSError) or "No space left" in str(error):
                raise StorageError(f"feed {self.shared.feed.name}: a batch could not be written ({reason})") from error
            raise UnavailableError(
                f"feed {self.shared.feed.name}: slices {', '.join(str(index) for index, _, _ in ranges)} could not be "
                f"processed ({reason}); they are tried again"
            ) from error

    def _process_lines(self, lines: DataFrame, starts: Mapping[int, int]) -> DataFrame:
        """What comes after ``starts`` in the dataset's columns, as the feed's function has left it."""
        if self.shared.feed.topic:
            checked = check_lines(self.shared.dataset, self.shared.feed.sliced_by, self._log.most_bytes)
            lines = lines.mapInArrow(checked, SCHEMA)
        rows = lines.select(*self._parsing)
        return rows if self._function is None else self._function.apply(rows, starts)

    def _write(self, rows: DataFrame) -> list[WrittenRows]:
        """Writes them here or there."""
        return self._there(rows) if self._by_executors else self._here(rows)

    def _here(self, rows: DataFrame) -> list[WrittenRows]:
        """Written by this process."""
        found = rows.toArrow()
        self._row_bytes = found.nbytes
        unseen = self._ids.unseen if self._ids else first_of
        return [self._sorter.write(found, unseen, self._arriving)] if found.num_rows else []

    def _arriving(self, rows: pa.Table) -> None:
        self._matching.begin(rows.nbytes, lambda: frames.in_one_piece(self._spark, rows))

    def _there(self, rows: DataFrame) -> list[WrittenRows]:
        """Written by the executors; where ids turn out to have been seen before, once more without them."""
        written = [read_report(row.report) for row in rows.mapInArrow(self._sorter, REPORT).collect()]
        if self._ids is not None and written:
            new = self._ids.unseen(np.concatenate([part.hashes for part in written], axis=1))
            bounds = np.cumsum([part.hashes.shape[1] for part in written])[:-1]
            self._drop(list(zip(written, np.split(new, bounds), strict=True)))
        self._arrived([part.records for part in written if part.records is not None])
        return written

    def _arrived(self, records: Sequence[NodeFile]) -> None:
        paths, columns = [self._lake.path(file.path) for file in records], self.shared.dataset.columns
        size = sum(file.size for file in records)
        self._matching.begin(size, lambda: frames.of_files(self._spark, record_schema(columns), paths))

    def _drop(self, written: Sequence[tuple[WrittenRows, np.ndarray[tuple[int], np.dtype[np.bool_]]]]) -> None:
        """Replaces the files that have rows which are not new."""
        for part, new in written:
            old = part.records
            if old is None or new.all():
                continue
            request = {"file": [msgspec.json.encode(old).decode()], "kept": [new.tobytes()]}
            frame = self._spark.createDataFrame(pa.table(request), "file string, kept binary")
            [row] = frame.mapInArrow(RowDropper(self._sorter), REPORT).collect()
            part.files = [file for file in part.files if file is not old] + read_report(row.report).files
            part.digests = part.hashes[:, new].T.tobytes()
            self.discard([files.encode(old)])

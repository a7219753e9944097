"""From the feed log into the dataset: one Structured Streaming query per feed.

Each micro-batch becomes one Delta commit that carries, per slice, the log position it reached. Spark may run a batch
again (after an error of ours), and a restart begins anew from the markers; rows below a slice's marker are
therefore dropped, whatever Spark believes.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.source import FORMAT, FeedSource
from tocsin.data.feeds.teaching import teach
from tocsin.data.lake.table import VERSION, Table
from tocsin.errors import StorageError
from tocsin.log import get_logger
from tocsin.schema.definitions import Dataset, DatasetKind, Feed
from tocsin.settings import FeedsSettings

log = get_logger(__name__)

_CORRUPT = "__corrupt"
_ROW = "__row"
DEAD_LETTERS = pa.schema(
    [("slice", pa.int32()), ("position", pa.int64()), ("line", pa.string()), ("reason", pa.string())]
)


def marker(index: int) -> str:
    """The name of a slice's marker in the dataset's commits."""
    return f"slice-{index}"


def positions(table: Table, feed: Feed) -> list[int]:
    """The log position that each slice has reached in the dataset."""
    return [table.marker(marker(index)) for index in range(feed.slices)]


class Ingestion:
    """Keeps one dataset filled from one feed's log.

    What can go wrong: the disk is full (the batch is tried again after a pause, and the log keeps what is accepted);
    a line does not fit the columns, as after a change of the dataset, or part of the log cannot be read (it goes to the
    dead letters, and the rest goes on); Spark ends the query (it is started again from the markers). While it cannot go
    on, ``problem`` says why.

    Args:
        committed: called after each commit, from a thread of Spark's.
    """

    def __init__(
        self,
        spark: SparkSession,
        feed: Feed,
        dataset: Dataset,
        table: Table,
        dead_letters: Table,
        *,
        log_path: Path,
        scratch: Path,
        seen: SeenIds | None,
        settings: FeedsSettings,
        committed: Callable[[], None],
    ) -> None:
        self.feed, self.dataset, self.table = feed, dataset, table
        self.problem = ""
        self._spark, self._dead_letters = spark, dead_letters
        self._log_path, self._scratch, self._seen = log_path, scratch / f"checkpoint-{feed.name}", seen
        self._settings, self._tell_committed = settings, committed
        self._key = str(dataset.primary_key)
        self._columns = pa.schema([f for f in table.schema if f.name != VERSION])
        self._parsing = self._expressions()
        self._query: StreamingQuery | None = None
        self._stopping = threading.Event()
        # Spark lets a query end while a batch of it is still in our hands; the next query's must not overtake it.
        self._committing = threading.Lock()
        self._starting = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, name=f"ingest-{feed.name}", daemon=True)

    def start(self) -> None:
        """Starts the streaming query, from the positions that the dataset is known to have."""
        self._start_query()
        self._watcher.start()

    def stop(self) -> None:
        """Stops after the batch at hand; nothing is committed any more once this returns."""
        self._stopping.set()
        with self._committing:
            pass
        with self._starting:
            if self._query is not None:
                self._query.stop()
        self._watcher.join()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _start_query(self) -> None:
        with self._starting:
            if self._stopping.is_set():
                return
            shutil.rmtree(self._scratch, ignore_errors=True)
            keyed = self.dataset.kind is DatasetKind.KEYED
            pause = self._settings.keyed_commit_ms if keyed else self._settings.append_commit_ms
            self._query = (
                self._stream()
                .writeStream.foreachBatch(self._ingest)
                .queryName(f"feed-{self.feed.name}")
                .option("checkpointLocation", self._scratch.as_uri())
                .trigger(processingTime=f"{int(pause)} milliseconds")
                .start()
            )

    def _stream(self) -> DataFrame:
        self._spark.dataSource.register(FeedSource)
        return (
            self._spark.readStream.format(FORMAT)
            .option("path", str(self._log_path))
            .option("positions", msgspec.json.encode(positions(self.table, self.feed)).decode())
            .option("maxBytes", str(self._settings.max_batch_bytes))
            .option("readers", str(self._spark.sparkContext.defaultParallelism))
            .load()
        )

    def _watch(self) -> None:
        """Starts the query again when it ends without being asked to."""
        while not self._stopping.is_set():
            try:
                assert self._query is not None
                if not self._query.awaitTermination(1):
                    continue
                reason = "no reason given"
            except Exception as error:
                reason = _first_line(error)
            if self._stopping.is_set():
                return
            self._report(f"feed {self.feed.name}: ingestion ended ({reason}); it is started again by itself")
            self._stopping.wait(self._settings.retry_after_seconds)
            try:
                self._start_query()
            except Exception as error:
                self._report(f"feed {self.feed.name}: ingestion cannot be started ({_first_line(error)})")

    def _ingest(self, batch: DataFrame, batch_id: int) -> None:  # noqa: ARG002
        """Takes a batch of Spark's into the dataset, however often that has to be tried."""
        with self._committing:
            if self._stopping.is_set():
                return
            rows = self._parsed(batch)
            while not self._try_to_commit(rows):
                if self._stopping.wait(self._settings.retry_after_seconds):
                    return
            self.problem = ""
            self._tell_committed()

    def _try_to_commit(self, rows: pa.Table) -> bool:
        """Whether the rows are in the dataset by now; if not, the problem is told."""
        try:
            self._commit(self._above_markers(rows))
        except StorageError as error:
            self._report(f"feed {self.feed.name}: {error}")
            return False
        return True

    def _parsed(self, batch: DataFrame) -> pa.Table:
        """The rows of a batch, with the columns that their lines' JSON has."""
        rows = batch.select(*self._parsing).toArrow()
        fields = rows[_ROW].combine_chunks().flatten()
        for name, field in zip((*self._columns.names, _CORRUPT), fields, strict=True):
            rows = rows.append_column(name, field)
        return rows.drop_columns(_ROW)

    def _expressions(self) -> list[Column]:
        """What Spark computes for each line of the log: its place, and its JSON as one struct."""
        columns = ", ".join(f"`{c.name}` {c.type.ddl}" for c in self.dataset.columns)
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        row = F.from_json("line", f"{columns}, `{_CORRUPT}` STRING", options).alias(_ROW)
        return [*(F.col(name).alias(f"__{name}") for name in ("slice", "position", "damage")), row]

    def _above_markers(self, rows: pa.Table) -> pa.Table:
        floor = np.array(positions(self.table, self.feed), dtype=np.int64)[rows["__slice"].to_numpy()]
        return rows.filter(pa.array(rows["__position"].to_numpy() > floor))

    def _commit(self, rows: pa.Table) -> None:
        """Commits the rows with the markers they reach; those that cannot be stored go to the dead letters first."""
        if not rows.num_rows:
            return
        reached = rows.group_by("__slice").aggregate([("__position", "max")])
        markers = {
            marker(index): position
            for index, position in zip(
                reached["__slice"].to_pylist(), reached["__position_max"].to_pylist(), strict=True
            )
        }
        whole = pc.and_(pc.is_null(rows["__damage"]), pc.is_null(rows[_CORRUPT]))
        self._bury(rows.filter(pc.invert(whole)), markers)
        self._store(rows.filter(whole).select(self._columns.names).cast(self._columns), markers)

    def _store(self, rows: pa.Table, markers: dict[str, int]) -> None:
        keyed = self.dataset.kind is DatasetKind.KEYED
        if keyed:
            rows = _newest(rows, self._key)
        elif self._seen is not None:
            teach(self._seen, self.table, self._key)
            rows = rows.filter(pa.array(self._seen.unseen(rows[self._key].to_pylist())))
        if not rows.num_rows:
            self.table.mark(markers)
        elif keyed:
            self.table.merge(rows, self._key, markers)
        else:
            self.table.append(rows, markers)
        if self._seen is not None:
            self._seen.add(rows[self._key].to_pylist(), self.table.version)

    def _bury(self, rows: pa.Table, markers: dict[str, int]) -> None:
        """Keeps what cannot be stored, with the reason, once."""
        if not rows.num_rows:
            return
        damage = rows["__damage"].combine_chunks()
        reasons = pc.if_else(pc.is_null(damage), f"does not fit the columns of {self.dataset.name}", damage)
        letters = pa.table([rows["__slice"], rows["__position"], rows[_CORRUPT], reasons], schema=DEAD_LETTERS)
        floor = np.array([self._dead_letters.marker(marker(i)) for i in range(self.feed.slices)], dtype=np.int64)
        new = letters["position"].to_numpy() > floor[letters["slice"].to_numpy()]
        letters = letters.filter(pa.array(new))
        if letters.num_rows:
            self._dead_letters.append(letters, markers)
            for reason in pc.unique(letters["reason"]).to_pylist():
                log.error("dead letters", feed=self.feed.name, reason=reason)

    def _report(self, sentence: str) -> None:
        self.problem = sentence
        log.error(sentence, feed=self.feed.name)


def _newest(rows: pa.Table, key: str) -> pa.Table:
    """The last row of each key, in the order of arrival."""
    numbered = rows.select([key]).append_column("__n", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(key).aggregate([("__n", "max")])["__n_max"]
    return rows.take(last.combine_chunks().sort())


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)

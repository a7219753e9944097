"""From the feed log into the dataset, in micro-batches.

Each micro-batch becomes one Delta commit that carries, per slice, the log position it reached. A batch may come again
(Spark runs a query's again after an error of ours), and a restart begins anew from the markers; rows below a slice's
marker are therefore dropped, whatever whoever brings them believes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.cancelling import cancel_until
from tocsin.data.disk import FULL_SENTENCE, says_full
from tocsin.data.feeds.deadletters import COLUMNS, count_beyond, without
from tocsin.data.feeds.following import Following, LogFollowing, QueryFollowing
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.feeds.parsing import DEAD_LETTERS, STORED, dead_letters, expressions, flatten, is_whole
from tocsin.data.feeds.teaching import teach
from tocsin.data.lake.table import VERSION, Table
from tocsin.data.processing.stage import Letter, Processing
from tocsin.data.reasons import reason_of
from tocsin.errors import InvalidError, StorageError
from tocsin.functions import require_allowed
from tocsin.log import get_logger
from tocsin.schema.definitions import Dataset, DatasetKind, Feed
from tocsin.settings import FeedsSettings
from tocsin.slices.failures import FailingSlices
from tocsin.slices.limits import SliceLimits

__all__ = ["DEAD_LETTERS", "Ingestion", "marker", "positions"]

log = get_logger(__name__)

# Of the reasons for dead letters, which a function may have as many of as there are records.
_LOGGED = 10
T = TypeVar("T")


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
    dead letters, and the rest goes on); Spark fails, or ends the query (it is begun again from the markers); the
    function of the feed fails on records (these go to the dead letters), or cannot be had (it is waited for); a slice
    makes batches fail (it is left out for longer and longer, and the others go on). While it cannot go on, ``problem``
    says why.

    Args:
        committed: called after each commit, from the thread that brings batches.
        arriving: entered with the rows of a commit while they are stored.
    """

    def __init__(
        self,
        spark: SparkSession,
        feed: Feed,
        dataset: Dataset,
        table: Table,
        dead_letters: Table,
        *,
        feed_log: PublicationLog,
        scratch: Path,
        seen: SeenIds | None,
        settings: FeedsSettings,
        committed: Callable[[], None],
        arriving: Callable[[pa.Table], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.feed, self.dataset, self.table = feed, dataset, table
        self._problem, self._failing = "", FailingSlices(SliceLimits())
        self._spark, self._dead_letters = spark, dead_letters
        self._log, self._scratch, self._seen = feed_log, scratch / f"checkpoint-{feed.name}", seen
        self._settings, self._committed, self._arriving = settings, committed, arriving
        self._key = str(dataset.primary_key)
        self._columns = pa.schema([f for f in table.schema if f.name != VERSION])
        self._processing = self._function()
        self._parsing = expressions(dataset, whole_lines=self._processing is not None)
        self._following: Following | None = None
        self._stopping = threading.Event()
        # Spark lets a query end while a batch of it is still in our hands; the next query's must not overtake it.
        self._committing = threading.Lock()
        self._starting = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, name=f"ingest-{feed.name}", daemon=True)

    @property
    def problem(self) -> str:
        """Why it does not get on, with all slices or with some; empty if it does."""
        left_out = list(self._failing.left_out.items())[:3]
        some = (f"feed {self.feed.name}: slice {index} is left out for now: {reason}" for index, reason in left_out)
        return "; ".join(filter(None, (self._problem, *some)))

    def start(self) -> None:
        """Begins to follow the log, from the positions that the dataset is known to have."""
        self._follow()
        self._watcher.start()

    def stop(self) -> None:
        """Stops after the batch at hand; nothing is committed any more once this returns."""
        self._stopping.set()
        cancel_until(lambda seconds: self._committing.acquire(timeout=seconds), self._cancel)
        self._committing.release()
        with self._starting:
            if self._following is not None:
                self._following.stop()
        self._watcher.join()

    def _cancel(self) -> None:
        # A function may take its time, and what it does is done again by the next who begins at the markers.
        if self._processing is not None and self._following is not None:
            self._following.cancel()

    def _follow(self) -> None:
        with self._starting:
            if self._stopping.is_set():
                return
            settings, begin = self._settings, positions(self.table, self.feed)
            keyed = self.dataset.kind is DatasetKind.KEYED
            pause = (settings.keyed_commit_ms if keyed else settings.append_commit_ms) / 1000
            if not settings.streaming:
                name, most, failing = self.feed.name, settings.max_batch_bytes, self._failing
                self._following = LogFollowing(self._spark, name, self._log, begin, failing, most, pause, self._ingest)
            else:
                stream = self._log.stream(self._spark, begin, settings.max_batch_bytes)
                self._following = QueryFollowing(stream, f"feed-{self.feed.name}", self._scratch, pause, self._ingest)

    def _watch(self) -> None:
        """Begins again when the following ends without being asked to."""
        while not self._stopping.is_set():
            try:
                assert self._following is not None
                if not self._following.ended(1):
                    continue
                reason = "no reason given"
            except Exception as error:
                reason = _first_line(error)
            if self._stopping.is_set():
                return
            self._report(f"feed {self.feed.name}: ingestion ended ({reason}); it is started again by itself")
            self._stopping.wait(self._settings.retry_after_seconds)
            try:
                self._follow()
            except Exception as error:
                self._report(f"feed {self.feed.name}: ingestion cannot be started ({_first_line(error)})")

    def _ingest(self, batch: DataFrame) -> None:
        """Takes a batch into the dataset, however often that has to be tried."""
        with self._committing:
            if self._stopping.is_set():
                return
            rows = self._patiently(lambda: self._try_to_parse(batch))
            if rows is None or not self._patiently(lambda: self._try_to_commit(rows) or None):
                return
            self._problem = ""
            self._committed()
            self._log.took(rows.nbytes)

    def _patiently(self, attempt: Callable[[], T | None]) -> T | None:
        """What an attempt gives when it gives something at last; None if there is no more time."""
        while (found := attempt()) is None:
            if self._stopping.wait(self._settings.retry_after_seconds):
                return None
        return found

    def _try_to_parse(self, batch: DataFrame) -> pa.Table | None:
        """The rows of a batch; if its feed's function cannot be had, that is told."""
        try:
            return self._parse(batch)
        except InvalidError as error:
            self._report(f"feed {self.feed.name}: {error}")
            return None

    def _try_to_commit(self, rows: pa.Table) -> bool:
        """Whether the rows are in the dataset by now; if not, the problem is told."""
        try:
            self._commit(self._above_markers(rows))
        except StorageError as error:
            self._report(f"feed {self.feed.name}: {error}")
            return False
        return True

    def _parse(self, batch: DataFrame) -> pa.Table:
        """The rows of a batch, with the columns that their lines' JSON has."""
        parsed = batch.select(*self._parsing)
        rows = parsed.toArrow() if self._processing is None else self._process(self._processing, parsed)
        return flatten(rows, self.dataset)

    def _process(self, processing: Processing, parsed: DataFrame) -> pa.Table:
        require_allowed(processing.function, self._settings.functions)
        floor = positions(self.table, self.feed)
        return processing.collect(parsed, floor, self._count_buried(floor))

    def _function(self) -> Processing | None:
        """What the feed's function needs, if it has one."""
        if not self.feed.processed_by:
            return None
        seconds, memory = self._settings.function_seconds, self._settings.function_bytes
        return Processing(self.feed.processed_by, self._columns, self.dataset.primary_key, seconds, memory)

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
        whole = is_whole(rows)
        self._bury(rows.filter(pc.invert(whole)), markers)
        whole = pc.and_(whole, rows[STORED])
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
        else:
            with self._arriving(rows):
                if keyed:
                    self.table.merge(rows, self._key, markers)
                else:
                    self.table.append(rows, markers)
        if self._seen is not None:
            self._seen.add(rows[self._key].to_pylist(), self.table.version)

    def _bury(self, rows: pa.Table, markers: dict[str, int]) -> None:
        """Keeps what cannot be stored, with the reason, once."""
        if not rows.num_rows:
            return
        floor = positions(self.table, self.feed)
        letters = without(dead_letters(rows, self.dataset), self._count_buried(floor))
        if letters.num_rows:
            self._dead_letters.append(letters, markers)
            for reason in pc.unique(letters["reason"]).to_pylist()[:_LOGGED]:
                log.error("dead letters", feed=self.feed.name, reason=reason)

    def _count_buried(self, floor: Sequence[int]) -> Counter[Letter]:
        """How many of which lines beyond these positions are dead letters already, as after a crash before the dataset
        had its commit: there they stay, also where a function would not fail on them this time."""
        if all(self._dead_letters.marker(marker(index)) <= position for index, position in enumerate(floor)):
            return Counter()
        return count_beyond(self._dead_letters.read(columns=COLUMNS), floor)

    def _report(self, sentence: str) -> None:
        self._problem = sentence
        log.error(sentence, feed=self.feed.name)


def _newest(rows: pa.Table, key: str) -> pa.Table:
    """The last row of each key, in the order of arrival."""
    numbered = rows.select([key]).append_column("__n", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(key).aggregate([("__n", "max")])["__n_max"]
    return rows.take(last.combine_chunks().sort())


def _first_line(error: Exception) -> str:
    # Spark passes what it is given through files, wherever there is room for them.
    return FULL_SENTENCE if says_full(str(error)) else reason_of(error)

"""One feed at work: its log, the way in, and the way on into its dataset."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tocsin.data.feeds.admission import Admission
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.ingest import DEAD_LETTERS, Ingestion, positions
from tocsin.data.feeds.log import FeedLog
from tocsin.data.lake.table import Table
from tocsin.errors import ConflictError
from tocsin.model.definitions import Dataset, DatasetKind, Feed
from tocsin.model.messages import FeedHealth
from tocsin.settings import Feeds


class Pipeline:
    """Owns a feed's log. Takes publications at once; what they bring is stored from :meth:`start` on.

    Args:
        directory: of the data cluster.
        committed: called after each commit to the dataset.
    """

    def __init__(
        self,
        feed: Feed,
        dataset: Dataset,
        table: Table,
        directory: Path,
        settings: Feeds,
        committed: Callable[[], None],
    ) -> None:
        self.feed, self.dataset, self._table, self._settings = feed, dataset, table, settings
        self._directory, self._committed = directory, committed
        self._read = positions(table, feed)
        self.log = FeedLog(directory / "feeds" / feed.name, feed.slices, settings.segment_bytes, self._read).open()
        self.admission = Admission(feed, dataset, self.log, settings, lambda: self.backlog)
        self._ingestion: Ingestion | None = None
        self._caught_up = time.monotonic()
        self.problem = ""

    @property
    def backlog(self) -> int:
        """Bytes of the log that the dataset does not have yet."""
        return self.log.backlog(self._read)

    def health(self) -> FeedHealth:
        """How the feed is doing."""
        backlog = self.backlog
        if not backlog:
            self._caught_up = time.monotonic()
        problem = self._ingestion.problem if self._ingestion is not None else None
        return FeedHealth(self.feed.name, backlog, round(time.monotonic() - self._caught_up, 3), problem or self.problem)

    def start(self, spark: SparkSession, scratch: Path) -> None:
        """Begins to store what the log holds."""
        unique = self.dataset.kind is DatasetKind.APPEND and self.dataset.primary_key is not None
        ids = SeenIds(self._directory / "ids" / self.dataset.name) if unique else None
        self._ingestion = Ingestion(
            spark,
            self.feed,
            self.dataset,
            self._table,
            Table(self._directory / "dead-letters" / self.feed.name, DEAD_LETTERS),
            log_path=self.log.path,
            scratch=scratch,
            seen=ids,
            settings=self._settings,
            committed=self._stored,
            reported=self._report,
        )
        self._ingestion.start()

    def stop(self) -> None:
        """Stores no more and lets go of the log."""
        if self._ingestion is not None:
            self._ingestion.stop()
        self.log.close()

    def drain(self, timeout: float) -> None:
        """Waits until the dataset has everything that was accepted."""
        deadline = time.monotonic() + timeout
        while self.backlog:
            if time.monotonic() > deadline:
                raise ConflictError(
                    f"feed {self.feed.name} still has {self.backlog:,} bytes that its dataset has not; try again later"
                )
            time.sleep(0.02)

    def _stored(self) -> None:
        self._read = positions(self._table, self.feed)
        self.log.release(self._read)
        self._committed()

    def _report(self, sentence: str) -> None:
        self.problem = sentence

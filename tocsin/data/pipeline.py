"""One feed at work: its log, the way in, and the way on into its dataset."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tocsin.data.disk import Disk
from tocsin.data.feeds.admission import Admission
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.ingest import DEAD_LETTERS, Ingestion, positions
from tocsin.data.feeds.lag import Lag
from tocsin.data.feeds.log import FeedLog
from tocsin.data.lake.table import Table
from tocsin.errors import ConflictError, StorageError
from tocsin.log import get_logger
from tocsin.model.messages import FeedHealth
from tocsin.schema.definitions import Dataset, DatasetKind, Feed
from tocsin.settings import FeedsSettings

log = get_logger(__name__)


class Pipeline:
    """Owns a feed's log. Takes publications at once; what they bring is stored from :meth:`start` on.

    Args:
        directory: of the data cluster.
        committed: called with the dataset's name after each commit to it.
    """

    def __init__(
        self,
        feed: Feed,
        dataset: Dataset,
        table: Table,
        directory: Path,
        settings: FeedsSettings,
        disk: Disk,
        committed: Callable[[str], None],
    ) -> None:
        self.feed, self.dataset, self._table, self._settings = feed, dataset, table, settings
        self._directory, self._committed = directory, committed
        self._read = positions(table, feed)
        self._progress = threading.Condition()
        self._lag = Lag()
        self.dead_letters = Table(directory / "dead-letters" / feed.name, DEAD_LETTERS, disk=disk)
        self.log = FeedLog(directory / "feeds" / feed.name, feed.slices, settings.segment_bytes, self._read).open()
        self.admission = Admission(feed, dataset, self.log, settings, lambda: self.backlog)
        self._ingestion: Ingestion | None = None

    @property
    def backlog(self) -> int:
        """Bytes of the log that the dataset does not have yet."""
        read, ends = self._read, self.log.ends()
        self._lag.observe(sum(ends), sum(read))
        return sum(max(end - position, 0) for position, end in zip(read, ends, strict=True))

    def health(self) -> FeedHealth:
        """How the feed is doing. Damage is told of until the quarantined files have been looked at and moved away."""
        backlog = self.backlog
        lag = self._lag.seconds() if backlog else 0.0
        problem = self._ingestion.problem if self._ingestion is not None else ""
        return FeedHealth(self.feed.name, backlog, round(lag, 3), problem or self.admission.refusal or self._damage())

    def start(self, spark: SparkSession, scratch: Path) -> None:
        """Begins to store what the log holds."""
        unique = self.dataset.kind is DatasetKind.APPEND and self.dataset.primary_key is not None
        ids = SeenIds(self._directory / "ids" / self.dataset.name) if unique else None
        self._ingestion = Ingestion(
            spark,
            self.feed,
            self.dataset,
            self._table,
            self.dead_letters,
            log_path=self.log.path,
            scratch=scratch,
            seen=ids,
            settings=self._settings,
            committed=self._note_commit,
        )
        self._ingestion.start()

    def stop(self) -> None:
        """Stores no more and lets go of the log."""
        if self._ingestion is not None:
            self._ingestion.stop()
        self.log.close()

    def drain(self, timeout: float) -> None:
        """Takes no more, and waits until the dataset has everything that was accepted.

        Raises ConflictError, and takes publications again, if that takes longer than ``timeout`` seconds.
        """
        self.admission.seal()
        with self._progress:
            drained = self._progress.wait_for(lambda: not self.backlog, timeout)
        if not drained:
            self.admission.unseal()
            raise ConflictError(
                f"feed {self.feed.name} still has {self.backlog:,} bytes that its dataset has not; try again later"
            )

    def _note_commit(self) -> None:
        """The dataset has more: what it has of the log can go, and whoever waits for it is told."""
        with self._progress:
            self._read = positions(self._table, self.feed)
            self._progress.notify_all()
        try:
            self.log.release(self._read)
        except StorageError as error:
            log.warning("a part of the feed log that is no longer needed stays", feed=self.feed.name, reason=str(error))
        self._committed(self.dataset.name)

    def _damage(self) -> str:
        files = sorted((self.log.path / "quarantine").glob("[!.]*"))
        if not files:
            return ""
        return (
            f"feed {self.feed.name}: {len(files)} damaged part(s) of its log could not be read; what was in them is in "
            f"{files[0].parent}, the positions are among its dead letters; move the files away when you have seen them"
        )

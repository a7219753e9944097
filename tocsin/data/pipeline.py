"""One feed at work: its log, the way in, and the way on into its dataset."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.admission import Admission
from tocsin.data.feeds.identity import SeenIds
from tocsin.data.feeds.ingest import DEAD_LETTERS, Ingestion, positions
from tocsin.data.feeds.lag import Lag
from tocsin.data.feeds.logs import EMBEDDED, OpenableLog, PublicationLog, find_log
from tocsin.data.feeds.obstructed import OBSTACLES, LogOpening, ObstructedLog
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.location import DEAD_LETTERS as DEAD_LETTERS_FOLDER
from tocsin.data.lake.table import Table
from tocsin.data.nodes.sharing import FunctionLimits, SharedFeed, require_shareable, share
from tocsin.data.nodes.storing import Matched
from tocsin.data.store import Topics
from tocsin.errors import ConflictError, InvalidError, StorageError, SupersededError, TocsinError
from tocsin.log import get_logger
from tocsin.model.messages import FeedHealth
from tocsin.model.slices import FeedSlices
from tocsin.schema.definitions import Dataset, DatasetKind, Feed
from tocsin.settings import FeedsSettings

if TYPE_CHECKING:
    from tocsin.data.sharing.heads import Heads
    from tocsin.data.sharing.ingestion import SharedIngestion

log = get_logger(__name__)


class Pipeline:
    """Owns a feed's log. Takes publications at once; what they bring is stored from :meth:`start` on.

    What can go wrong: the log is in Kafka, and cannot be opened, as that is away, or the topic is not what it was.
    With ``patience`` the feed is obstructed then: it takes nothing and stores nothing, ``health`` says why, and it goes
    on by itself as soon as the log can be opened. Otherwise the reason is raised.

    Args:
        directory: of the data cluster.
        lake: where its dead letters go.
        committed: called with the dataset's name after each commit to it.
        arriving: entered with the dataset's name and the rows of a commit while they are stored.
        heads: where nodes share slices.
        matched: told what channels have found in what nodes brought, once that is stored.
    """

    def __init__(
        self,
        feed: Feed,
        dataset: Dataset,
        table: Table,
        directory: Path,
        lake: Folder,
        settings: FeedsSettings,
        topics: Topics,
        committed: Callable[[str], None],
        arriving: Callable[[str, pa.Table], AbstractContextManager[None]],
        heads: Heads | None = None,
        matched: Matched = lambda _table, _version, _batches: None,
        *,
        patience: bool = False,
    ) -> None:
        self.feed, self.dataset, self._table, self._settings, self._heads = feed, dataset, table, settings, heads
        self._directory, self._lake, self._matched = directory, lake, matched
        self._committed, self._arriving = committed, arriving
        self._read = positions(table, feed)
        self._progress = threading.Condition()
        self._lag = Lag()
        self.dead_letters = Table(lake.below(DEAD_LETTERS_FOLDER).below(feed.name), DEAD_LETTERS)
        self._ingestion: Ingestion | SharedIngestion | None = None
        # Of the log that is opened late, the start and the end.
        self._changing = threading.Lock()
        self._started: tuple[SparkSession, Path] | None = None
        self._stopped = False
        self._opening: LogOpening | None = None
        found = find_log(feed, dataset, directory / "feeds" / feed.name, settings, topics, self._read, lake.fence)
        self.log = self._open(found, patience)
        self.admission = self._admit()
        if isinstance(self.log, ObstructedLog):
            self._opening = LogOpening(found, self._go_on, self._obstruct)

    def _open(self, found: OpenableLog, patience: bool) -> PublicationLog:
        try:
            return found.open()
        except OBSTACLES as error:
            if self._settings.log == EMBEDDED or not patience or isinstance(error, SupersededError):
                raise
            log.warning("the log of a feed cannot be opened", feed=self.feed.name, reason=str(error))
            return ObstructedLog(self.feed, self._read, str(error))

    def _obstruct(self, reason: str) -> None:
        """The log could still not be opened."""
        if not self._stopped:
            self.log = ObstructedLog(self.feed, self._read, reason)

    def _admit(self) -> Admission:
        return Admission(self.feed, self.dataset, self.log, self._settings, lambda: self.backlog)

    def _go_on(self, opened: PublicationLog) -> None:
        """The log is open at last; called from the thread that tried."""
        with self._changing:
            if self._stopped:
                opened.close()
                return
            self.log, before = opened, self.admission
            self.admission = self._admit()
            before.release()
            if before.closed:
                self.admission.seal()
            log.info("the log of a feed is open", feed=self.feed.name)
            if self._started is not None:
                self._begin(*self._started)

    @property
    def backlog(self) -> int:
        """Bytes of the log that the dataset does not have yet."""
        read = self._read
        self._lag.observe(sum(self.log.ends()), sum(read))
        return self.log.backlog(read)

    def health(self) -> FeedHealth:
        """How the feed is doing."""
        backlog = self.backlog
        lag = self._lag.seconds() if backlog else 0.0
        problem = self._ingestion.problem if self._ingestion is not None else ""
        error = problem or self.admission.refusal or self.log.damage()
        return FeedHealth(self.feed.name, backlog, round(lag, 3), error, self.slice_records)

    @property
    def slice_records(self) -> list[int]:
        """How many records each slice was given since the start; of a topic that others fill nobody counts them."""
        return [] if self.feed.topic else self.admission.slice_records

    def start(self, spark: SparkSession, scratch: Path) -> None:
        """Begins to store what the log holds, as soon as it is open."""
        with self._changing:
            self._started = (spark, scratch)
            if not isinstance(self.log, ObstructedLog):
                self._begin(spark, scratch)

    def _begin(self, spark: SparkSession, scratch: Path) -> None:
        if self._heads is not None and not self.why_unshared:
            self._ingestion = self._share(self._heads, spark)
        else:
            self._ingestion = self._ingest(spark, scratch)
        self._ingestion.start()

    @property
    def why_unshared(self) -> str:
        """Why nodes cannot share its slices; empty if they do."""
        if self._heads is None:
            return "nodes.share = true would share it"
        if self._heads.is_automatic and self.feed.processed_by:
            # There it could not give other keys, and would be called by a driver as well.
            return f"its function {self.feed.processed_by} runs in the data cluster; nodes.share = true would share it"
        try:
            require_shareable(self.feed, self.dataset)
        except InvalidError as error:
            return str(error)
        return ""

    def slices(self) -> FeedSlices:
        """Who owns which of its slices."""
        found = self._heads.slices(self.feed.name) if self._heads is not None else None
        reason = self.log.damage() if isinstance(self.log, ObstructedLog) else self.why_unshared
        return found or FeedSlices(self.feed.name, self.dataset.name, shared=False, reason=reason)

    def _ingest(self, spark: SparkSession, scratch: Path) -> Ingestion:
        unique = self.dataset.kind is DatasetKind.APPEND and self.dataset.primary_key is not None
        ids = SeenIds(self._directory / "ids" / self.dataset.name) if unique else None
        return Ingestion(
            spark,
            self.feed,
            self.dataset,
            self._table,
            self.dead_letters,
            feed_log=self.log,
            scratch=scratch,
            seen=ids,
            settings=self._settings,
            committed=self.committed,
            arriving=partial(self._arriving, self.dataset.name),
        )

    def _share(self, heads: Heads, spark: SparkSession) -> SharedIngestion:
        from tocsin.data.sharing.ingestion import SharedIngestion

        return SharedIngestion(
            heads,
            spark,
            self._shared_feed(heads),
            self._table,
            self.dead_letters,
            feed_log=self.log,
            ids=self._directory / "node-ids" / self.dataset.name,
            committed=self.committed,
            matched=self._matched,
            kafka=KafkaAccess.of(self._settings),
            functions=self._settings.functions,
        )

    def _shared_feed(self, heads: Heads) -> SharedFeed:
        settings = self._settings
        function = FunctionLimits(settings.function_seconds, settings.function_bytes)
        return share(self.feed, self.dataset, self.log, self._lake, settings.max_batch_bytes, heads.matching, function)

    def stop(self) -> None:
        """Stores no more and lets go of the log."""
        if self._opening is not None:
            self._opening.stop()
        with self._changing:
            self._stopped = True
        if self._ingestion is not None:
            self._ingestion.stop()
        self.admission.release()
        self.log.close()

    def drain(self, timeout: float) -> None:
        """Takes no more, and waits until the dataset has everything that was accepted.

        Raises ConflictError, and takes publications again, if that takes longer than ``timeout`` seconds, and
        UnavailableError if the log cannot be asked how far it goes.
        """
        self.admission.seal()
        try:
            # Whoever had the log before us may have written to it since we last looked.
            self.log.newest_ends()
            self._wait_until_stored(timeout)
        except TocsinError:
            self.admission.unseal()
            raise

    def _wait_until_stored(self, timeout: float) -> None:
        with self._progress:
            drained = self._progress.wait_for(lambda: not self.backlog, timeout)
        if not drained:
            raise ConflictError(
                f"feed {self.feed.name} still has {self.backlog:,} bytes that its dataset has not; try again later"
            )

    def committed(self) -> None:
        """The dataset has more: what it has of the log can go, and whoever waits for it is told."""
        with self._progress:
            self._read = positions(self._table, self.feed)
            self._progress.notify_all()
        try:
            self.log.release(self._read)
        except StorageError as error:
            log.warning("a part of the feed log that is no longer needed stays", feed=self.feed.name, reason=str(error))
        self._committed(self.dataset.name)

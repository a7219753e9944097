"""A feed filled by processing nodes: what stands where the data cluster's own ingestion does otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from tocsin.data.feeds.access import KafkaAccess
from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.lake.table import Table
from tocsin.data.nodes.processing import SliceProcessing
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.data.nodes.storing import CommitStore, Matched
from tocsin.data.session import is_local
from tocsin.data.sharing.heads import FeedToShare, Heads


class SharedIngestion:
    """Keeps one dataset filled from one feed's log, by whichever nodes there are.

    Args:
        ids: for the ids that the data cluster sees as a node.
        committed: called after each commit, from a thread.
        matched: told before that what channels have found in it.
        functions: the modules that the feed's function may be of, if the data cluster is to run it as a node.
    """

    def __init__(
        self,
        heads: Heads,
        spark: SparkSession,
        shared: SharedFeed,
        table: Table,
        dead_letters: Table,
        *,
        feed_log: PublicationLog,
        ids: Path,
        committed: Callable[[], None],
        matched: Matched,
        kafka: KafkaAccess,
        functions: Sequence[str] = (),
    ) -> None:
        self._heads, self._name = heads, shared.feed.name
        store = CommitStore(shared, table, dead_letters, feed_log, matched)
        work = partial(SliceProcessing, spark, shared, ids, kafka=kafka, functions=functions)
        self._feed = FeedToShare(shared, store, committed, work, is_local(spark))

    @property
    def problem(self) -> str:
        """Why it cannot go on; empty while it does."""
        return self._heads.problem(self._name)

    def start(self) -> None:
        """Begins to give slices to nodes, from the positions that the dataset is known to have."""
        self._heads.begin(self._feed)

    def stop(self) -> None:
        """Nothing is committed any more once this returns."""
        self._heads.end(self._name)

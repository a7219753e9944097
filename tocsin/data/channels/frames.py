"""The relations that one round of executions reads, all of the same moment, each read once.

Channels that are due together make a round. What is new in a dataset since a version, if several channels of the round
want it, is read once and kept in Spark's memory until the round is over.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.channels.arrival import Arrival
from tocsin.data.compiler.rewrite import BE
from tocsin.data.ids import IdArray
from tocsin.data.lake import frames
from tocsin.data.lake.table import Table
from tocsin.data.subscriptions import Segments

_NUMBERS = itertools.count(1)


class ExecutionRound:
    """The datasets as they are now. May be used from several threads.

    Args:
        wanted: which news, ``(dataset, since)``, will be asked for, as often as they will be.
        arrival: records that are not stored yet, but count as if they were the next version of their dataset.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Mapping[str, Table],
        wanted: Iterable[tuple[str, int]],
        arrival: Arrival | None = None,
    ) -> None:
        self.arrival = arrival
        self._spark = spark
        # Datasets may be created and dropped meanwhile.
        self._tables = dict(tables)
        self._snapshots = {name: table.snapshot for name, table in self._tables.items()}
        self._shared = {key for key, times in Counter(wanted).items() if times > 1}
        self._views: dict[tuple[str, int | None], str] = {}
        self._kept: list[DataFrame] = []
        self._lock = threading.Lock()

    def version(self, dataset: str) -> int:
        """The version up to which a dataset's news are seen in this round."""
        if self.arrival is not None and self.arrival.dataset == dataset:
            return self.arrival.version
        return self._snapshots[dataset].version

    def whole(self, dataset: str) -> str:
        """A view of all records."""
        return self._view((dataset, None))

    def fresh(self, dataset: str, since: int) -> str:
        """A view of the records that are new since a version."""
        return self._view((dataset, since))

    def close(self) -> None:
        """Lets go of what was kept in memory, after the last execution of the round."""
        with self._lock:
            kept, views = self._kept, list(self._views.values())
            self._kept, self._views = [], {}
        for frame in kept:
            frame.unpersist()
        for view in views:
            self._spark.catalog.dropTempView(view)

    def _view(self, key: tuple[str, int | None]) -> str:
        with self._lock:
            if key not in self._views:
                self._views[key] = register(self._frame(*key))
            return self._views[key]

    def _frame(self, dataset: str, since: int | None) -> DataFrame:
        table, snapshot = self._tables[dataset], self._snapshots[dataset]
        if since is None:
            return frames.whole(self._spark, table, snapshot)
        if self.arrival is not None and self.arrival.dataset == dataset:
            return frames.in_one_piece(self._spark, self.arrival.rows)
        frame = frames.fresh(self._spark, table, snapshot, since)
        if (dataset, since) in self._shared:
            frame = frame.persist()
            self._kept.append(frame)
        return frame


def register(frame: DataFrame) -> str:
    """Makes a frame a view of its own name."""
    name = f"__view{next(_NUMBERS)}"
    frame.createOrReplaceTempView(name)
    return name


class SubscriptionFrames:
    """Channels' subscriptions as views, made again only when they have changed, and then only from the change.

    Different channels may be asked for at the same time, one channel only by one thread at a time.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        # The segments are held with the view: their files stay for as long as somebody has them.
        self._views: dict[str, tuple[Segments, IdArray, str]] = {}

    def view(self, channel: str, segments: Segments, aside: IdArray) -> str:
        """A view of the subscriptions but those set aside; valid until the next call for the same channel."""
        held = self._views.get(channel)
        if held is not None and held[0].generation == segments.generation and np.array_equal(held[1], aside):
            return held[2]
        self.drop(channel)
        view = register(without(self._spark, self._frame(segments), pa.array(aside)))
        self._views[channel] = (segments, aside, view)
        return view

    def drop(self, channel: str) -> None:
        """Forgets a channel."""
        held = self._views.pop(channel, None)
        if held is not None:
            self._spark.catalog.dropTempView(held[2])

    def _frame(self, segments: Segments) -> DataFrame:
        added = frames.local(self._spark, segments.added)
        if segments.base is None:
            return added
        base = self._spark.read.schema(added.schema).parquet(segments.base)
        left = without(self._spark, base, segments.removed)
        return left.unionByName(added) if segments.added.num_rows else left


def without(spark: SparkSession, frame: DataFrame, bes: pa.Array) -> DataFrame:
    """Subscriptions but for these."""
    return frame.join(_local(spark, bes), BE, "left_anti") if len(bes) else frame


def only(spark: SparkSession, frame: DataFrame, bes: pa.Array) -> DataFrame:
    """Those of some subscriptions that are among these."""
    return frame.join(_local(spark, bes), BE, "left_semi")


def _local(spark: SparkSession, bes: pa.Array) -> DataFrame:
    return frames.local(spark, pa.table({BE: bes})).hint("broadcast")

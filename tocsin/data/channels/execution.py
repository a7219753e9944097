"""One execution: a channel run for all its subscriptions on what is there now, its results committed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from tocsin.data.channels import query
from tocsin.data.channels.check import Compiled
from tocsin.data.channels.frames import Round, SubscriptionFrames
from tocsin.data.lake.table import Table
from tocsin.data.results import Results, sizes
from tocsin.data.sql.rewrite import SUBSCRIPTIONS, fresh
from tocsin.data.subscriptions import Subscriptions


@dataclass(frozen=True)
class Execution:
    """What an execution did: its number, the BE subscriptions with results and the bytes of each."""

    channel: str
    number: int
    bes: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    seconds: float


class Executor:
    """Runs channels. An execution that fails has changed nothing and can be tried again.

    Different channels may run at the same time, one channel only once at a time.
    """

    def __init__(self, spark: SparkSession, tables: Mapping[str, Table], subscriptions: Subscriptions) -> None:
        self._spark, self._tables, self._subscriptions = spark, tables, subscriptions
        self._subscribed = SubscriptionFrames(spark)

    def news(self, compiled: Compiled, results: Results) -> list[tuple[str, int]]:
        """What the channel will ask a round for: the news of its datasets since it last ran."""
        return [(name, results.seen(name)) for name in sorted(compiled.fresh)]

    def has_work(self, compiled: Compiled, results: Results) -> bool:
        """Whether an execution could find anything."""
        if not self._subscriptions.count(compiled.channel.name):
            return False
        news = self.news(compiled, results)
        return not compiled.quiet or any(self._tables[name].version > since for name, since in news)

    def run(self, compiled: Compiled, results: Results, moment: Round) -> Execution:
        """Executes the channel on the datasets of ``moment``."""
        started = time.monotonic()
        name = compiled.channel.name
        views = {SUBSCRIPTIONS: self._subscribed.view(name, self._subscriptions.segments(name))}
        views |= {dataset: moment.whole(dataset) for dataset in compiled.whole}
        views |= {fresh(dataset): moment.fresh(dataset, since) for dataset, since in self.news(compiled, results)}
        found = self._spark.sql(query.bound(compiled.statement, views))
        versions = {dataset: moment.snapshot(dataset).version for dataset in compiled.fresh}
        number, rows = results.commit(found, versions, datetime.now(UTC))
        bes, bytes_ = sizes(rows)
        return Execution(name, number, bes, bytes_, time.monotonic() - started)

    def forget(self, channel: str) -> None:
        """Lets go of what is kept for a channel."""
        self._subscribed.drop(channel)

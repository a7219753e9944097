"""A data cluster's parts put together for a benchmark, without server and clock: the same code, called directly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.data.channels.execution import Execution, Executor
from tocsin.data.channels.frames import ExecutionRound
from tocsin.data.channels.letters import DeadLetters
from tocsin.data.compiler.check import Compiled, check
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.table import Table
from tocsin.data.language.forms import CreateChannel, CreateDataset
from tocsin.data.language.parser import parse
from tocsin.data.results import Cache, ChannelResults
from tocsin.data.store import Store
from tocsin.data.subscriptions import SubscriptionRegistry
from tocsin.schema.arrow import arrow_type
from tocsin.schema.definitions import Channel, Dataset
from tocsin.settings import ChannelsSettings

APPLICATION = """
CREATE DATASET Reports (id STRING, etype STRING, severity INT, x DOUBLE, y DOUBLE, message STRING, at TIMESTAMP)
  PRIMARY KEY id;
CREATE KEYED DATASET Locations (userId STRING, x DOUBLE, y DOUBLE, at TIMESTAMP) PRIMARY KEY userId;
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS SELECT r.* FROM Reports r WHERE r.etype = event AND is_new(r);
CREATE CONTINUOUS CHANNEL NearMe(user STRING) AS
  SELECT r.* FROM Reports r JOIN Locations u ON near(r.x, r.y, u.x, u.y, 500) WHERE u.userId = user AND is_new(r);
"""


class DataBench:
    """Datasets, channels, subscriptions and an executor in a directory of their own."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.store = Store(directory)
        self.store.brokers.register("bench", "http://127.0.0.1:1")
        self.datasets: dict[str, Dataset] = {}
        self.channels: dict[str, Channel] = {}
        for statement in parse(APPLICATION):
            if isinstance(statement, CreateDataset):
                self.datasets[statement.definition.name] = statement.definition
            elif isinstance(statement, CreateChannel):
                self.channels[statement.definition.name] = statement.definition
                self.store.definitions.put(statement.definition)
        self.tables = {n: Table(directory / "datasets" / n, _schema(d)) for n, d in self.datasets.items()}
        self.subscriptions = SubscriptionRegistry(self.store, directory / "subscriptions")
        letters = DeadLetters(DirectoryFolder(directory / "letters"))
        self.executor = Executor(
            spark, self.tables, self.subscriptions, self.store.set_aside, letters, ChannelsSettings()
        )
        self._results = {n: ChannelResults(n, directory / "results" / n, Cache(64 << 20)) for n in self.channels}
        self._compiled: dict[str, Compiled] = {}

    def attach(self, channel: str, values: list[dict[str, object]]) -> None:
        """Subscribes."""
        self.subscriptions.attach(self.channels[channel], "bench", values)

    def compile(self, channel: str) -> Compiled:
        """The channel as it will run."""
        if channel not in self._compiled:
            self._compiled[channel] = check(self.spark, self.channels[channel], self.datasets)
        return self._compiled[channel]

    def execute(self, channel: str) -> Execution:
        """Runs a channel on what is new."""
        compiled, results = self.compile(channel), self._results[channel]
        moment = ExecutionRound(self.spark, self.tables, [])
        try:
            return self.executor.run(compiled, results, moment)
        finally:
            moment.close()

    def skip(self, channel: str) -> None:
        """Counts everything so far as seen."""
        compiled = self.compile(channel)
        self._results[channel].skip({name: self.tables[name].version for name in compiled.fresh})


def reports(count: int, kinds: int, seed: int, extent: float = 45_000) -> pa.Table:
    """Seeded reports of about 500 bytes each, their types drawn evenly, without repetition if there are enough."""
    rng = np.random.default_rng(seed)
    kind = rng.permutation(kinds)[:count] if kinds >= count else rng.integers(0, kinds, count)
    now = pa.array(np.full(count, 1_790_000_000_000_000), pa.timestamp("us", tz="UTC"))
    return pa.table(
        {
            "id": [f"{seed}-{i}" for i in range(count)],
            "etype": [f"e{k}" for k in kind],
            "severity": pa.array(rng.integers(1, 6, count), pa.int32()),
            "x": rng.random(count) * extent,
            "y": rng.random(count) * extent,
            "message": ["".join(c) for c in rng.choice(list("abcdefghij "), (count, 380))],
            "at": now,
        }
    )


def locations(count: int, seed: int, extent: float = 45_000) -> pa.Table:
    """Seeded places of users u0, u1, …"""
    rng = np.random.default_rng(seed)
    now = pa.array(np.full(count, 1_790_000_000_000_000), pa.timestamp("us", tz="UTC"))
    x, y = rng.random((2, count)) * extent
    return pa.table({"userId": [f"u{i}" for i in range(count)], "x": x, "y": y, "at": now})


@contextmanager
def add_time(seconds: list[float]) -> Iterator[None]:
    """Adds how long the block took."""
    began = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - began)


def repeat(times: int, action: Callable[[int], None]) -> list[float]:
    """How long each of several turns took."""
    seconds: list[float] = []
    for turn in range(times):
        with add_time(seconds):
            action(turn)
    return seconds


def _schema(dataset: Dataset) -> pa.Schema:
    return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in dataset.columns])

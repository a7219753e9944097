"""A catalog on a directory of its own, whose datasets are filled directly: everything but the feeds' streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from tests.waiting import until
from tocsin.data.applying import Applier
from tocsin.data.catalog import Catalog
from tocsin.data.channels.execution import Execution
from tocsin.data.store import Store
from tocsin.model.messages import Published, StatementOutcome
from tocsin.settings import Settings

DATASETS = """
CREATE DATASET Reports (id STRING, etype STRING, severity INT) PRIMARY KEY id;
CREATE KEYED DATASET People (name STRING, likes STRING) PRIMARY KEY name;
"""
FEED = "CREATE FEED reports INTO Reports SLICED BY id INTO 4 SLICES;"
CHANNEL = """CREATE CONTINUOUS CHANNEL OfType(event STRING) AS
SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);"""


class World:
    """What a process has open, and what its channels told of."""

    def __init__(self, spark: SparkSession, directory: Path, heads: Any = None, **settings: Any) -> None:
        retries = {
            "channels": {"retry_seconds": 0.05, "max_retry_seconds": 0.2},
            "feeds": {"retry_after_seconds": 0.05, "slices": 4},
        }
        self.settings = msgspec.convert({**retries, **settings, "data": {"directory": directory}}, Settings)
        self.spark: Future[SparkSession] = Future()
        self.executions: list[Execution] = []
        self.dropped: list[str] = []
        self.failures: list[tuple[str, str]] = []
        self._session, self._heads, self._open = spark, heads, False
        self.open()

    def open(self) -> None:
        """Opens what is stored, as a new process would, but does not begin yet."""
        self.store = Store(self.settings.data.directory)
        self.store.brokers.register("b", "http://b")
        self.spark = Future()
        self.spark.set_result(self._session)
        told = (self.executions.append, self._dropped)
        self.catalog = Catalog(self.settings, self.store, self.spark, *told, failing=self._failing, heads=self._heads)
        self._applier = Applier(self.catalog, self.settings.feeds)
        self._open = True

    def _dropped(self, channel: str, incarnation: str) -> None:
        self.dropped.append(channel)

    def _failing(self, channel: str, reason: str) -> None:
        self.failures.append((channel, reason))

    def start(self) -> World:
        self.catalog.start()
        return self

    def close(self) -> None:
        if self._open:
            self.catalog.stop()
            self.store.close()
        self._open = False

    def restart(self) -> None:
        """Ends, and begins again with what is on disk."""
        self.close()
        self.open()
        self.start()

    def apply(self, text: str, directory: Path | None = None) -> list[StatementOutcome]:
        return self._applier.apply(text, directory)

    def actions(self, text: str, directory: Path | None = None) -> list[str]:
        """What each statement did."""
        return [outcome.action for outcome in self.apply(text, directory)]

    def put(self, dataset: str, *rows: Mapping[str, object]) -> None:
        """Stores records, as a feed would."""
        table = self.catalog.tables[dataset]
        schema = pa.schema([field for field in table.schema if field.name != "_v"])
        table.append(pa.Table.from_pylist([dict(row) for row in rows], schema), {})
        self.catalog.runner.committed(dataset)

    def arrive(self, dataset: str, *rows: Mapping[str, object], meanwhile: Callable[[], None] = lambda: None) -> None:
        """Stores records with channels matched on arrival; ``meanwhile`` they are not there yet."""
        table = self.catalog.tables[dataset]
        schema = pa.schema([field for field in table.schema if field.name != "_v"])
        arriving = pa.Table.from_pylist([dict(row) for row in rows], schema)
        with self.catalog.runner.arriving(dataset, arriving):
            meanwhile()
            table.append(arriving, {})
        self.catalog.runner.committed(dataset)

    def attach(self, channel: str, *values: Mapping[str, object]) -> list[int]:
        return self.catalog.live.attach(channel, "b", [dict(value) for value in values]).bes

    def found(self, channel: str) -> list[tuple[int, Any]]:
        """The BE subscriptions and rows of all results of a channel, in order."""
        results = [result for part in self.catalog.live[channel].results.pull(1, 10**9) for result in part.results]
        return [(result.be, row) for result in results for row in json.loads(bytes(result.payload))]

    def wait_for(self, channel: str, count: int) -> list[tuple[int, Any]]:
        """Waits until a channel has found so many rows."""
        return until(lambda: found if len(found := self.found(channel)) >= count else [])

    def idle(self) -> None:
        """Waits until no channel runs, nor a continuous one is about to."""
        until(lambda: all(map(self._is_idle, self.catalog.channels)))

    def _is_idle(self, name: str) -> bool:
        continuous = self.catalog.channels[name].period is None
        return self.catalog.runner.is_idle(name) if continuous else self.catalog.live.status(name).state == "waiting"

    def shown(self, what: str) -> dict[str, dict[str, Any]]:
        """SHOW, by name."""
        [outcome] = self.apply(f"SHOW {what}")
        return {row["name"]: row for row in outcome.rows}


def reports(*types: str, first: int = 0) -> Sequence[Mapping[str, object]]:
    """Reports r0, r1, … of these types, with severities 0, 1, …"""
    return [{"id": f"r{first + n}", "etype": etype, "severity": n} for n, etype in enumerate(types)]


def publish(world: World, *names: str) -> Published:
    """Publishes reports of fires with these ids to the feed ``reports``."""
    body = json.dumps([{"id": name, "etype": "fire", "severity": 1} for name in names]).encode()
    return asyncio.run(world.catalog.pipelines["reports"].admission.publish(body, "application/json"))

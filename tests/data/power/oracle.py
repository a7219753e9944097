"""What publishers and brokers were told, and when; and whether a data directory still knows of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from tocsin.data.catalog import Catalog
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.reader import Chunk, read
from tocsin.data.fence import put_up_fence
from tocsin.data.pipeline import Pipeline
from tocsin.data.store import Store
from tocsin.settings import Settings

Found = tuple[int, str]


@dataclass(frozen=True)
class Told:
    """A channel's execution that a broker heard of, and if it has pulled it, what was found, and for whom."""

    execution: int
    found: frozenset[Found] | None = None


@dataclass
class Oracle:
    """What was said until the machine went dark, each with the time at which it was heard."""

    appended: list[tuple[float, list[str]]] = field(default_factory=list)
    moved: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    told: list[tuple[float, Told]] = field(default_factory=list)
    attached: list[tuple[float, list[int]]] = field(default_factory=list)
    applied: list[tuple[float, dict[str, bool]]] = field(default_factory=list)

    def accepted(self, cut: float) -> set[str]:
        """The ids of the records that were accepted by then."""
        return {name for at, names in self.appended if at < cut for name in names}

    def check(self, catalog: Catalog, cut: float) -> None:
        """Nothing that had been said at the time of the cut is forgotten, and nothing is there twice."""
        self._check_applied(catalog, cut)
        assert [table.damage for table in catalog.all_tables() if table.damage] == []
        for live in catalog.live:
            ahead = [n for n, table in catalog.tables.items() if live.results.seen_version(n) > table.version]
            assert not ahead, f"{live.definition.name} has seen more than there is of {ahead}"
        if "reports" in catalog.pipelines:
            self._check_appended(catalog, cut)
        if "people" in catalog.pipelines:
            self._check_moved(catalog, cut)
        if "OfType" in catalog.channels:
            self._check_told(catalog, cut)
        for table in catalog.all_tables():
            table.read()

    def _check_applied(self, catalog: Catalog, cut: float) -> None:
        there = {*catalog.datasets, *catalog.pipelines, *catalog.channels}
        # What is not answered yet may be there or not.
        last = [at for at, _ in self.applied if at < cut]
        unsure = {name for at, names in self.applied if not last or at > last[-1] for name in names}
        said: dict[str, bool] = {}
        for at, names in self.applied:
            if at < cut:
                said.update(names)
        for name, exists in said.items():
            assert name in unsure or (name in there) is exists, f"{name} is{' not' if exists else ''} there"

    def _check_appended(self, catalog: Catalog, cut: float) -> None:
        stored = Counter(catalog.tables["Reports"].read(columns=["id"])["id"].to_pylist())
        waiting = {record["id"] for record in _waiting(catalog.pipelines["reports"])}
        assert not [name for name, count in stored.items() if count > 1]
        lost = self.accepted(cut) - set(stored) - waiting
        assert not lost, f"accepted, but lost: {sorted(lost)}"

    def _check_moved(self, catalog: Catalog, cut: float) -> None:
        rows = catalog.tables["People"].read(columns=["name", "step"]).to_pylist()
        steps = {row["name"]: row["step"] for row in rows}
        assert len(steps) == len(rows)
        for record in _waiting(catalog.pipelines["people"]):
            steps[record["name"]] = record["step"]
        for at, moved in self.moved:
            behind = [name for name, step in moved.items() if at < cut and steps.get(name, -1) < step]
            assert not behind, f"accepted, but lost: {behind} at {moved}"

    def _check_told(self, catalog: Catalog, cut: float) -> None:
        results = catalog.live["OfType"].results
        kept: dict[int, set[Found]] = {}
        for result in (each for part in results.pull(1, results.execution) for each in part.results):
            kept.setdefault(result.execution, set())
            kept[result.execution] |= {(result.be, row["id"]) for row in json.loads(bytes(result.payload))}
        found = [row for rows in kept.values() for row in rows]
        assert len(found) == len(set(found)), "found twice"
        for at, told in self.told:
            if at < cut:
                assert results.execution >= told.execution, "an execution that was told would come again"
                assert told.execution in kept, f"told, but lost: execution {told.execution}"
                assert told.found in (None, kept[told.execution]), f"execution {told.execution} is another one now"
        known = set(catalog.live.subscriptions.of("tester").tolist())
        assert {be for at, bes in self.attached if at < cut for be in bes} <= known


@contextmanager
def opened(directory: Path, spark: Future[SparkSession], settings: dict[str, Any]) -> Iterator[Catalog]:
    """What a data cluster opens when it starts, before Spark is there."""
    built = msgspec.convert({**settings, "data": {"directory": directory}}, Settings)
    with Store(directory) as store:
        store.claim()
        fence = put_up_fence(directory, store)
        catalog = Catalog(built, store, spark, lambda _: None, lambda _, __: None, fence=fence)
        try:
            yield catalog
        finally:
            catalog.stop()


def _waiting(pipeline: Pipeline) -> Iterator[dict[str, Any]]:
    """The records in the log of a feed that its dataset does not have yet."""
    assert isinstance(pipeline.log, FeedLog)
    for index, (start, end) in enumerate(zip(pipeline._read, pipeline.log.ends(), strict=True)):
        for entry in read(pipeline.log.path, index, start, end):
            assert isinstance(entry, Chunk), f"a part of the log cannot be read: {entry}"
            yield from map(json.loads, entry.records)

"""Upkeep: results past their time go, small files are merged, and one table's trouble is not another's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.data.world import DATASETS, World, reports
from tests.waiting import until
from tocsin.data.lake.table import Table
from tocsin.data.upkeep import Upkeep
from tocsin.errors import StorageError

pytestmark = pytest.mark.spark

CHANNEL = "CREATE CONTINUOUS CHANNEL All() AS SELECT r.id FROM Reports r WHERE is_new(r);"
SETTINGS: dict[str, Any] = {
    "lake": {"maintenance_seconds": 0.05, "vacuum_after_seconds": 0.001, "compact_files": 3},
    "results": {"retention_seconds": 1},
}


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    world = World(spark, tmp_path / "data", **SETTINGS)
    world.apply(DATASETS + CHANNEL)
    yield world
    world.close()


@pytest.fixture
def upkeep(world: World) -> Iterator[Upkeep]:
    upkeep = Upkeep(world.catalog, world.settings)
    yield upkeep
    upkeep.stop()


def files(table: Table) -> int:
    return len(list(table.path.glob("*.parquet")))


def test_small_files_are_merged_and_those_nobody_needs_deleted(world: World, upkeep: Upkeep) -> None:
    for number in range(4):
        world.put("Reports", *reports("fire", first=number))
    table = world.catalog.tables["Reports"]
    assert files(table) == 4
    upkeep.start()
    until(lambda: files(table) == 1)
    assert sorted(table.read()["id"].to_pylist()) == ["r0", "r1", "r2", "r3"]
    assert table.version == 4


def test_a_few_files_are_left_alone(world: World, upkeep: Upkeep) -> None:
    for number in range(2):
        world.put("Reports", *reports("fire", first=number))
    upkeep.round()
    assert files(world.catalog.tables["Reports"]) == 2


def test_results_are_removed_after_their_time(world: World, upkeep: Upkeep) -> None:
    world.start()
    world.attach("All", {})
    world.put("Reports", *reports("fire"))
    world.wait_for("All", 1)
    upkeep.start()
    until(lambda: world.found("All") == [])
    until(lambda: files(world.catalog.live["All"].results.table) == 0)
    assert world.catalog.live["All"].results.execution == 1


def test_a_table_in_trouble_does_not_keep_the_others_waiting(
    world: World, upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise StorageError("the disk failed")

    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    for number in range(3):
        world.put("Reports", *reports("fire", first=number))
    monkeypatch.setattr(world.catalog.live["All"].results, "expire", refused)
    monkeypatch.setattr(world.catalog.tables["People"], "vacuum", broken)
    upkeep.round()
    assert len(world.catalog.tables["Reports"].snapshot.files) == 1


def test_base_files_of_subscriptions_are_looked_after(
    world: World, upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebased: list[str] = []
    monkeypatch.setattr(world.catalog.live.subscriptions, "due", lambda: ["All"])
    monkeypatch.setattr(world.catalog.live.subscriptions, "rebase", rebased.append)
    upkeep.round()
    assert rebased == ["All"]


def test_once_stopped_nothing_is_touched_any_more(world: World) -> None:
    for number in range(4):
        world.put("Reports", *reports("fire", first=number))
    upkeep = Upkeep(world.catalog, world.settings)
    upkeep.stop()
    upkeep.round()
    assert files(world.catalog.tables["Reports"]) == 4

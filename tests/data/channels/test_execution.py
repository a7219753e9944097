"""Channels on a real Spark: what is new, for whom, once; and what one channel's trouble costs the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.data.world import DATASETS, World, reports
from tests.waiting import until
from tocsin.data.channels.frames import ExecutionRound

pytestmark = pytest.mark.spark

OF_TYPE = """
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);
"""
ANOTHER = """
CREATE CONTINUOUS CHANNEL Grave(least INT) AS SELECT r.id FROM Reports r WHERE r.severity >= least AND is_new(r);
"""


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    world = World(spark, tmp_path / "data").start()
    world.apply(DATASETS + OF_TYPE)
    yield world
    world.close()


def ids(found: list[tuple[int, Any]]) -> list[str]:
    return [row["id"] for _, row in found]


def test_a_match_is_found_once_for_each_who_asked_also_across_a_restart(world: World) -> None:
    fire, flood = world.attach("OfType", {"event": "fire"}, {"event": "flood"})
    world.put("Reports", *reports("fire", "storm", "flood"))
    assert world.wait_for("OfType", 2) == [(fire, {"id": "r0"}), (flood, {"id": "r2"})]
    world.restart()
    world.put("Reports", *reports("fire", first=10))
    world.wait_for("OfType", 3)
    world.idle()
    assert world.found("OfType")[2:] == [(fire, {"id": "r10"})]


def test_what_was_stored_while_nothing_ran_is_found_after_the_start(world: World) -> None:
    world.attach("OfType", {"event": "fire"})
    world.idle()
    world.close()
    world.open()
    world.put("Reports", *reports("fire"))
    world.start()
    assert ids(world.wait_for("OfType", 1)) == ["r0"]


def test_what_the_datasets_held_before_the_channel_was_created_is_not_new(world: World) -> None:
    world.put("Reports", *reports("fire"))
    world.apply(ANOTHER)
    world.attach("Grave", {"least": 0})
    world.put("Reports", *reports("fire", first=5))
    assert ids(world.wait_for("Grave", 1)) == ["r5"]


def test_an_execution_that_finds_nothing_moves_on_and_tells_nobody_anything(world: World) -> None:
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("storm"))
    until(lambda: world.catalog.live["OfType"].results.seen_version("Reports") == 1)
    world.idle()
    assert world.found("OfType") == []
    assert [len(execution.bes) for execution in world.executions] == [0]


def test_a_channel_without_subscriptions_costs_nothing_and_its_first_subscriber_sees_what_comes_later(
    world: World,
) -> None:
    world.put("Reports", *reports("fire"))
    world.put("Reports", *reports("fire", first=1))
    world.idle()
    assert (world.executions, world.catalog.live["OfType"].results.execution) == ([], 0)
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire", first=2))
    assert ids(world.wait_for("OfType", 1)) == ["r2"]
    world.idle()
    assert ids(world.found("OfType")) == ["r2"]


def test_who_subscribes_first_while_spark_is_still_starting_sees_what_comes_later(world: World) -> None:
    world.put("Reports", *reports("fire"))
    world.close()
    world.open()
    world.attach("OfType", {"event": "fire"})
    world.start()
    world.put("Reports", *reports("fire", first=2))
    assert ids(world.wait_for("OfType", 1)) == ["r2"]


def test_after_the_last_subscriber_left_the_next_one_is_a_first_one(world: World) -> None:
    bes = world.attach("OfType", {"event": "fire"})
    world.catalog.live.subscriptions.detach("b", bes)
    world.put("Reports", *reports("fire"))
    world.idle()
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire", first=1))
    assert ids(world.wait_for("OfType", 1)) == ["r1"]


def test_subscriptions_that_come_and_go_between_executions_are_respected(world: World) -> None:
    fire, flood = world.attach("OfType", {"event": "fire"}, {"event": "flood"})
    world.put("Reports", *reports("fire", "flood"))
    world.wait_for("OfType", 2)
    world.catalog.live.subscriptions.detach("b", [fire])
    [storm] = world.attach("OfType", {"event": "storm"})
    world.put("Reports", *reports("fire", "flood", "storm", first=5))
    assert world.wait_for("OfType", 4)[2:] == [(flood, {"id": "r6"}), (storm, {"id": "r7"})]
    # With a base file, from which some have gone and to which some have come.
    world.catalog.live.subscriptions.rebase("OfType")
    world.catalog.live.subscriptions.detach("b", [flood])
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire", "flood", "storm", first=10))
    assert ids(sorted(world.wait_for("OfType", 6)[4:])) == ["r12", "r10"]


def test_a_channel_that_fails_says_so_and_recovers_when_the_data_allow_and_the_others_go_on(world: World) -> None:
    world.apply(
        "CREATE CONTINUOUS CHANNEL Shares(most INT) AS SELECT p.name, most DIV CAST(p.likes AS INT) AS share "
        "FROM People p, Reports r WHERE is_new(r)"
    )
    world.catalog.tables["People"].merge(people(ann="0"), "name", {})
    world.attach("Shares", {"most": 10})
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire"))
    assert ids(world.wait_for("OfType", 1)) == ["r0"]
    failing = until(lambda: row if (row := world.shown("CHANNELS")["Shares"])["error"] else {})
    assert "DIVIDE_BY_ZERO" in failing["error"]
    assert failing["state"] in {"failing", "running"}
    assert world.catalog.live["Shares"].results.seen_version("Reports") == 0
    world.catalog.tables["People"].merge(people(ann="x"), "name", {})
    until(lambda: "CAST_INVALID_INPUT" in world.shown("CHANNELS")["Shares"]["error"])
    world.catalog.tables["People"].merge(people(ann="5"), "name", {})
    assert world.wait_for("Shares", 1)[0][1] == {"name": "ann", "share": 2}
    until(lambda: world.shown("CHANNELS")["Shares"]["error"] == "")


def people(**likes: str) -> pa.Table:
    return pa.table({"name": list(likes), "likes": list(likes.values())})


def test_channels_of_a_round_read_the_new_rows_once(
    world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(ANOTHER)
    world.attach("OfType", {"event": "fire"})
    world.attach("Grave", {"least": 0})
    world.idle()
    kept: list[DataFrame] = []
    cached: list[bool] = []
    real_frame, real_close = ExecutionRound._frame, ExecutionRound.close

    def framed(self: ExecutionRound, dataset: str, since: int | None) -> DataFrame:
        frame = real_frame(self, dataset, since)
        kept.append(frame)
        return frame

    def closed(self: ExecutionRound) -> None:
        # One of the executions has filled Spark's memory with them, and the other found them there.
        stored = spark.sparkContext._jsc.sc().getRDDStorageInfo()
        cached.append(any(held.numCachedPartitions() for held in stored))
        real_close(self)

    monkeypatch.setattr(ExecutionRound, "_frame", framed)
    monkeypatch.setattr(ExecutionRound, "close", closed)
    world.put("Reports", *reports("fire", "flood"))
    assert ids(world.wait_for("OfType", 1)) == ["r0"]
    assert ids(world.wait_for("Grave", 2)) == ["r0", "r1"]
    until(lambda: cached)
    assert (len(kept), cached) == (1, [True]), "both asked for the same news, which were read once and kept"
    until(lambda: not kept[0].storageLevel.useMemory)


def test_a_round_sees_one_moment_though_the_datasets_go_on(world: World, spark: SparkSession) -> None:
    world.put("Reports", *reports("fire"))
    moment = ExecutionRound(spark, world.catalog.tables, [("Reports", 0), ("Reports", 0)])
    world.put("Reports", *reports("fire", first=1))
    world.catalog.tables["Reports"].compact()
    world.catalog.tables["Reports"].vacuum(0)
    world.apply("CREATE DATASET Meanwhile (id STRING)")
    for view in (moment.whole("Reports"), moment.fresh("Reports", 0)):
        assert [row.id for row in spark.table(view).collect()] == ["r0"]
    assert moment.version("Reports") == 1
    views = [moment.whole("Reports"), moment.fresh("Reports", 0)]
    moment.close()
    assert not any(spark.catalog.tableExists(view) for view in views)


def test_views_do_not_pile_up(world: World, spark: SparkSession) -> None:
    def views() -> int:
        return len([table for table in spark.catalog.listTables() if table.name.startswith("__view")])

    before = views()
    world.attach("OfType", {"event": "fire"})
    for number in range(3):
        world.put("Reports", *reports("fire", first=number))
        world.wait_for("OfType", number + 1)
    world.idle()
    until(lambda: views() <= before + 1)
    world.apply("DROP CHANNEL OfType")
    until(lambda: views() <= before)


def test_a_replaced_channel_keeps_its_subscriptions_and_its_place(world: World) -> None:
    [fire] = world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire"))
    world.wait_for("OfType", 1)
    replaced = OF_TYPE.replace("CREATE", "CREATE OR REPLACE").replace("SELECT r.id", "SELECT r.id, r.severity")
    assert world.actions(replaced) == ["replaced"]
    world.put("Reports", *reports("fire", first=3))
    assert world.wait_for("OfType", 2)[1] == (fire, {"id": "r3", "severity": 0})
    world.idle()
    assert len(world.found("OfType")) == 2


def test_replacing_a_channel_waits_for_its_execution_and_numbers_stay_in_step(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.attach("OfType", {"event": "fire"})
    results = world.catalog.live["OfType"].results
    entered, leave = threading.Event(), threading.Event()
    real = results.commit

    def slow(*arguments: Any) -> Any:
        entered.set()
        assert leave.wait(60)
        return real(*arguments)

    monkeypatch.setattr(results, "commit", slow)
    world.put("Reports", *reports("fire"))
    assert entered.wait(60)
    body = "SELECT r.id FROM Reports r, People p WHERE r.etype = event AND is_new(r) AND is_new(p)"
    replacing = threading.Thread(
        target=world.apply, args=(f"CREATE OR REPLACE CONTINUOUS CHANNEL OfType(event STRING) AS {body}",)
    )
    replacing.start()
    world.catalog.tables["People"].merge(people(ann="fire"), "name", {})
    leave.set()
    replacing.join(60)
    world.idle()
    assert ids(world.found("OfType")) == ["r0"]
    stored = results.table.read(columns=["execution", "_v"]).to_pylist()
    assert all(row["execution"] == row["_v"] for row in stored)

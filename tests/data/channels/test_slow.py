"""Queries that would take for ever, on a real Spark: cancelled after a time, and waited for by nobody."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.data.world import DATASETS, World, reports
from tests.waiting import until

pytestmark = pytest.mark.spark

QUICK = """
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS SELECT r.id FROM Reports r WHERE r.etype = event AND is_new(r);
"""


def endless(name: str) -> str:
    return f"""
    CREATE CONTINUOUS CHANNEL {name}(least INT) AS
    SELECT r.id, count(*) AS n FROM Reports r, range(1000000000) a, range(1000) b
    WHERE r.severity >= least AND (a.id * b.id) % 11 = 3 AND is_new(r) GROUP BY r.id;
    """


def _error(world: World, channel: str) -> str:
    return world.catalog.live.status(channel).error


def jobs(spark: SparkSession) -> int:
    return len(spark.sparkContext.statusTracker().getActiveJobsIds())


def test_slow_channels_are_cancelled_and_keep_nobody_waiting(spark: SparkSession, tmp_path: Path) -> None:
    settings = {"retry_seconds": 1, "slow_seconds": 0.5, "execution_seconds": 3, "workers": 2}
    world = World(spark, tmp_path / "data", channels=settings).start()
    world.apply(DATASETS + QUICK + endless("Endless1") + endless("Endless2"))
    for channel in ("Endless1", "Endless2"):
        world.attach(channel, {"least": 0})
    world.put("Reports", *reports("storm"))
    until(lambda: all(world.catalog.live.status(name).state == "running" for name in ("Endless1", "Endless2")))
    world.attach("OfType", {"event": "fire"})
    world.put("Reports", *reports("fire", first=1))
    world.wait_for("OfType", 1)
    for channel in ("Endless1", "Endless2"):
        error = until(partial(_error, world, channel))
        assert "took longer than 3 s (channels.execution_seconds) and was cancelled" in error
        world.catalog.live.drop(channel)
    until(lambda: not jobs(spark))
    world.close()


def test_a_data_cluster_that_stops_does_not_wait_for_slow_channels(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path / "data").start()
    world.apply(DATASETS + endless("Endless"))
    world.attach("Endless", {"least": 0})
    world.put("Reports", *reports("storm"))
    until(lambda: jobs(spark))
    world.close()
    until(lambda: not jobs(spark))
    world.open()
    world.start()
    until(lambda: jobs(spark))
    world.apply("DROP CHANNEL Endless")
    until(lambda: not jobs(spark))
    world.close()

"""Queries that would take for ever, on a real Spark: when the data cluster stops, nobody waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.data.world import DATASETS, World, reports
from tests.waiting import until

pytestmark = pytest.mark.spark


def endless(name: str) -> str:
    return f"""
    CREATE CONTINUOUS CHANNEL {name}(least INT) AS
    SELECT r.id, count(*) AS n FROM Reports r, range(1000000000) a, range(1000) b
    WHERE r.severity >= least AND (a.id * b.id) % 11 = 3 AND is_new(r) GROUP BY r.id;
    """


def jobs(spark: SparkSession) -> int:
    return len(spark.sparkContext.statusTracker().getActiveJobsIds())


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

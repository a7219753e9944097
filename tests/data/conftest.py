"""What tests of the data cluster share: one small Spark, which starts slower than most of them run, and a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.data.world import World
from tests.kafka import connector_jars
from tests.s3 import KEY, SECRET
from tocsin.data.session import start
from tocsin.settings import SparkSettings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on two cores. Tests share it: they name their views apart, or take a ``newSession()``."""
    # Executors have keys of their own for a lake in S3.
    keys = {"spark.executorEnv.AWS_ACCESS_KEY_ID": KEY, "spark.executorEnv.AWS_SECRET_ACCESS_KEY": SECRET}
    extra = keys | ({"spark.jars": jars} if (jars := connector_jars()) else {})
    settings = SparkSettings(master="local[2]", driver_memory="1g", shuffle_partitions=2, extra=extra)
    session = start(settings, tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    """A catalog that is open, but not started."""
    world = World(spark, tmp_path / "data")
    yield world
    world.close()

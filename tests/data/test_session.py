"""What Spark is started with."""

from __future__ import annotations

import pyspark
import pytest

from tocsin.data.lake.bucket import Bucket, BucketAddress
from tocsin.data.session import connectors
from tocsin.settings import SparkSettings

LAKE = Bucket(BucketAddress("lake", "https://s3.example.org")).spark


def test_the_connectors_that_are_needed_are_fetched_in_sparks_own_version() -> None:
    kafka = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    s3 = "org.apache.hadoop:hadoop-aws:3.5.0"
    assert connectors(SparkSettings(), kafka=False, lake={}) == ""
    assert connectors(SparkSettings(), kafka=True, lake={}) == kafka
    assert connectors(SparkSettings(), kafka=False, lake=LAKE) == s3
    assert connectors(SparkSettings(), kafka=True, lake=LAKE) == f"{kafka},{s3}"


@pytest.mark.parametrize("name", ["spark.jars", "spark.jars.packages"])
def test_whoever_names_jars_has_all_that_are_needed(name: str) -> None:
    assert connectors(SparkSettings(extra={name: "mine"}), kafka=True, lake=LAKE) == ""

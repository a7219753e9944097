"""What Spark is started with."""

from __future__ import annotations

import pyspark
import pytest

from tocsin.data.cluster import shares_slices
from tocsin.data.lake.bucket import Bucket, BucketAddress
from tocsin.data.session import connectors
from tocsin.settings import SparkSettings, load

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


@pytest.mark.parametrize(
    ("said", "shared"),
    [
        (["spark.master=local[4]"], False),
        (["spark.master=spark://spark.example.org:7077"], True),
        (["spark.master=yarn"], True),
        (["spark.master=k8s://https://k8s.example.org"], True),
        (["spark.master=local-cluster[2,1,1024]"], True),
        (["spark.master=yarn", "lake.location=s3://bucket/lake"], True),
        (["spark.master=yarn", "nodes.share=false"], False),
        (["spark.master=local[4]", "nodes.share=true"], True),
    ],
)
def test_on_a_cluster_records_stay_with_the_executors_unless_somebody_says_otherwise(
    said: list[str], shared: bool
) -> None:
    assert shares_slices(load(overrides=said, environ={})) is shared

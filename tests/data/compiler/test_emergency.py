"""The shipped application runs on whatever numbers are published and asked for."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tocsin.apps.emergency import APPLICATION
from tocsin.data.compiler import query
from tocsin.data.compiler.check import check
from tocsin.data.compiler.rewrite import SUBSCRIPTIONS, fresh
from tocsin.data.lake import frames
from tocsin.data.language.parser import CreateChannel, CreateDataset, parse
from tocsin.data.subscriptions.rows import columns, table
from tocsin.schema.arrow import arrow_type
from tocsin.schema.definitions import Channel, Dataset

pytestmark = pytest.mark.spark

EXTREMES = [0.0, -1.0, -0.5, 94999.9, 95000.0, 1e18, 1e300, -1e300, 5e-324, float("inf"), float("-inf"), float("nan")]
STATEMENTS = parse(APPLICATION.read_text())
DATASETS = {s.definition.name: s.definition for s in STATEMENTS if isinstance(s, CreateDataset)}
CHANNELS = {s.definition.name: s.definition for s in STATEMENTS if isinstance(s, CreateChannel)}


def records(dataset: Dataset) -> pa.Table:
    """One at each extreme place."""
    places = list(itertools.product(EXTREMES, EXTREMES))
    other: dict[str, object] = {
        **{"id": "r", "etype": "fire", "severity": 5, "message": "", "userId": "ann", "name": "hall", "capacity": 1},
        "at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    rows = [{**{c.name: other[c.name] for c in dataset.columns if c.name in other}, "x": x, "y": y} for x, y in places]
    types = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in dataset.columns])
    return pa.Table.from_pylist(rows, types)


def subscriptions(channel: Channel) -> pa.Table:
    values = {"event": "fire", "location": "A1", "user": "ann"}
    rows = [tuple(values.get(p.name, radius) for p in channel.parameters) for radius in EXTREMES]
    return table(channel.parameters, np.arange(len(rows)), columns(channel.parameters, rows))


@pytest.mark.parametrize("name", CHANNELS)
def test_no_place_and_no_distance_is_too_far_for_it(name: str, spark: SparkSession) -> None:
    channel = CHANNELS[name]
    compiled = check(spark, channel, DATASETS)
    read = {dataset: dataset for dataset in compiled.whole} | {fresh(dataset): dataset for dataset in compiled.fresh}
    views = {}
    for relation, rows in [(r, records(DATASETS[d])) for r, d in read.items()] + [
        (SUBSCRIPTIONS, subscriptions(channel))
    ]:
        views[relation] = f"emergency_{relation}"
        frames.local(spark, rows).createOrReplaceTempView(views[relation])
    found = spark.sql(query.bind_views(compiled.statement, views)).toArrow()
    assert found.num_rows >= 1

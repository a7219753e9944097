"""A part of an embedded log as rows in Spark, for the data cluster's own ingestion and for nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.feeds.source import ARROW, SCHEMA, TASK_BYTES, LogRange, TaskReader, divide_ranges, read_ranges
from tocsin.data.lake.frames import in_one_piece


def read_here(spark: SparkSession, path: Path, ranges: Sequence[LogRange]) -> DataFrame:
    """What is there: columns slice, position (after the record), line, damage.

    A little is read at once, in this process, and more by Spark's tasks.
    """
    if sum(end - begin for _, begin, end in ranges) < TASK_BYTES:
        return in_one_piece(spark, pa.Table.from_batches(read_ranges(path, ranges), ARROW))
    return read_by_tasks(spark, path, ranges)


def read_by_tasks(spark: SparkSession, path: Path, ranges: Sequence[LogRange]) -> DataFrame:
    """The same, read where Spark computes, each slice by one task."""
    tasks = divide_ranges(ranges, spark.sparkContext.defaultParallelism)
    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(TaskReader(path, tasks), SCHEMA)

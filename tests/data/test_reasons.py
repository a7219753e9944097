"""What Spark says at length is told in the line that has the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tocsin.data.reasons import reason_of

IN_EXECUTOR = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1, in main
    raise first
ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "folder.py", line 7, in open_output
    raise OSError(
OSError: When putting node-1.parquet: AWS Error ACCESS_DENIED
and more of it
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("the table is gone\nJVM stacktrace:\n\tat somewhere", "the table is gone"),
        ("\n  no room \n", "no room"),
        ("", "RuntimeError"),
        (IN_EXECUTOR, "OSError: When putting node-1.parquet: AWS Error ACCESS_DENIED"),
        ("Traceback (most recent call last):\n  broken off", "Traceback (most recent call last):"),
    ],
)
def test_the_reason_is_a_line(said: str, reason: str) -> None:
    assert reason_of(RuntimeError(said)) == reason


@pytest.mark.spark
def test_what_python_fails_with_in_an_executor_is_the_reason(spark: SparkSession) -> None:
    def refused(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise OSError("When putting node-1.parquet: AWS Error ACCESS_DENIED")

    with pytest.raises(Exception, match="Python worker") as told:
        spark.range(1).mapInArrow(refused, "id long").collect()
    assert reason_of(told.value) == "OSError: When putting node-1.parquet: AWS Error ACCESS_DENIED"

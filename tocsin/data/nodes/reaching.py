"""Whether a node reaches the lake: by itself, and from the executors that compute for it.

Who may not write there is to say so before it has anything, and not with the first batch that it holds up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.data.lake.entries import LOG
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.unclaimed import new_name
from tocsin.data.reasons import reason_of
from tocsin.errors import StorageError, UnavailableError

# One for each core, so that each executor has at least one if all begin at the same time; nothing rests on that.
_MOST_TASKS: Final = 64
_TRIED = "name string, problem string"


def require_lake(table: Folder, dataset: str) -> None:
    """Raises StorageError unless the dataset's folder is there, and this process may write into it."""
    name = new_name()
    try:
        if not table.below(LOG).files():
            raise StorageError(
                f"the dataset {dataset} is not at {table.url} as seen from here: see that this machine has the same "
                "directory, or reaches the same bucket"
            )
        table.write(name, b"")
    except OSError as error:
        raise StorageError(
            f"nothing can be written at {table.url} from here ({error}): see that this machine may, by the same user "
            "or by credentials of its own"
        ) from error
    _discard(table, name)


def require_executors(spark: SparkSession, table: Folder) -> None:
    """Raises StorageError unless executors may write there as well, and it is the same folder for them.

    UnavailableError if they cannot be asked. Those that did not get a task tell with the first batch.
    """
    tasks = min(max(spark.sparkContext.defaultParallelism, 1), _MOST_TASKS)
    try:
        tried = spark.range(0, tasks, 1, tasks).mapInArrow(_Writing(table), _TRIED).collect()
    except Exception as error:
        raise UnavailableError(
            f"Spark's executors could not try whether they can write at {table.url} ({reason_of(error)}); see that "
            "they have the same version of Tocsin, with tocsin[s3] for a bucket; it is tried again"
        ) from error
    problems = [row.problem or _why_not_seen(table, row.name) for row in tried]
    for row in tried:
        _discard(table, row.name)
    if problem := next(filter(None, problems), ""):
        raise StorageError(
            f"Spark's executors cannot write at {table.url} ({problem}): see that each of their machines has the same "
            "directory, or credentials for the bucket in its environment"
        )


class _Writing:
    """Writes a file as a batch is written; runs in the executors, and gives its name and what was refused."""

    def __init__(self, table: Folder) -> None:
        self._table = table

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        name = new_name()
        yield pa.RecordBatch.from_pydict({"name": [name], "problem": [self._write(name)]})

    def _write(self, name: str) -> str:
        # Told, not raised: Spark would try it some times more.
        try:
            with self._table.open_output(name) as sink:
                sink.write(b"tried")
            self._table.keep(name)
        except OSError as error:
            return " ".join(str(error).split()) or type(error).__name__
        return ""


def _why_not_seen(table: Folder, name: str) -> str:
    try:
        return "" if table.find(name) is not None else "what one has written is not there as seen from here"
    except OSError as error:
        return str(error)


def _discard(table: Folder, name: str) -> None:
    """Who may not delete leaves it to the head, which removes what nobody claims."""
    with suppress(OSError):
        table.delete(name)

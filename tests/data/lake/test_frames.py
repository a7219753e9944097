"""Tables in Spark: snapshots as DataFrames, and DataFrames committed from here or from where they are computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.s3 import S3Server
from tocsin.data.lake import frames
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import Table
from tocsin.errors import StorageError

pytestmark = pytest.mark.spark

Rows = Callable[..., pa.Table]
Append = Callable[[Table, DataFrame, dict[str, int], list[str]], pa.Table]


def keys(frame: DataFrame) -> list[str]:
    return sorted(row.key for row in frame.collect())


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return DirectoryFolder(tmp_path / "table")


@pytest.fixture(params=["here", "executors"])
def append(request: pytest.FixtureRequest) -> Append:
    """The ways to commit a DataFrame, which must not differ in anything that can be seen."""
    return frames.append if request.param == "here" else frames.append_from_executors


def computed(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, 3).selectExpr("concat('k', id) AS key", "id * 10 AS value")


def test_a_snapshot_is_read_whole_or_from_a_version_on(spark: SparkSession, table: Table, rows: Rows) -> None:
    table.append(rows(a=1), {})
    table.append(rows(b=2, c=3), {})
    table.compact()
    table.append(rows(d=4), {})
    held = table.snapshot
    table.overwrite(rows(z=0), {})
    assert keys(frames.whole(spark, table, held)) == ["a", "b", "c", "d"]
    assert [keys(frames.fresh(spark, table, held, since)) for since in (0, 1, 2, 3)] == [
        ["a", "b", "c", "d"],
        ["b", "c", "d"],
        ["d"],
        [],
    ]
    assert frames.whole(spark, table, held).columns == ["key", "value"]


def test_rows_still_in_memory_are_the_rows_of_the_files(spark: SparkSession, remembering: Table, rows: Rows) -> None:
    table = remembering
    table.append(rows(a=1), {})
    table.mark({"slice-0": 1})
    table.append(rows(b=2, c=3), {})
    held = table.snapshot
    table.append(rows(d=4), {})
    found = frames.fresh(spark, table, held, 1)
    assert "LocalTableScan" in found._jdf.queryExecution().executedPlan().toString()
    assert keys(found) == ["b", "c"]
    assert found.schema == frames.whole(spark, table, held).schema
    assert keys(frames.fresh(spark, table, table.snapshot, 0)) == ["a", "b", "c", "d"]
    assert keys(frames.fresh(spark, table, held, held.version)) == []
    table.delete(pc.field("key") == "d")
    assert keys(frames.fresh(spark, table, table.snapshot, 1)) == ["b", "c"]


def test_an_empty_table_has_its_columns_and_costs_no_job(spark: SparkSession, table: Table) -> None:
    frame = frames.whole(spark, table, table.snapshot)
    assert frame.dtypes == [("key", "string"), ("value", "bigint")]
    assert frame.collect() == []
    assert "LocalTableScan" in frame._jdf.queryExecution().executedPlan().toString()


def test_a_frame_is_committed_with_its_markers_and_a_summary(
    spark: SparkSession, table: Table, append: Append, reopen: Callable[[], Table]
) -> None:
    summary = append(table, computed(spark, 100), {"seen-Reports": 7}, ["key"])
    assert summary.column_names == ["key"]
    assert sorted(summary["key"].to_pylist()) == sorted(f"k{n}" for n in range(100))
    again = reopen()
    assert (again.version, again.marker("seen-Reports")) == (1, 7)
    stored = again.read().to_pylist()
    assert sorted((row["key"], row["value"], row["_v"]) for row in stored) == sorted(
        (f"k{n}", n * 10, 1) for n in range(100)
    )
    assert again.snapshot.paths(0)
    assert again.snapshot.paths(1) == []


def test_a_frame_without_rows_moves_the_markers(spark: SparkSession, table: Table, append: Append) -> None:
    summary = append(table, computed(spark, 0), {"seen-Reports": 3}, ["key", "value"])
    assert (summary.num_rows, table.version, table.marker("seen-Reports")) == (0, 1, 3)
    assert summary.schema == table.schema.remove(2)
    assert table.snapshot.files == ()


def test_a_frame_that_fails_commits_nothing(spark: SparkSession, table: Table, append: Append) -> None:
    failing = spark.range(10).selectExpr("concat('k', id) AS key", "1 DIV (id - 5) AS value")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        append(table, failing, {"seen-Reports": 3}, ["key"])
    assert (table.version, table.marker("seen-Reports"), table.snapshot.files) == (0, 0, ())


def test_rows_written_by_executors_for_a_version_that_was_taken_meanwhile_are_not_committed(
    spark: SparkSession, table: Table, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Table.adopt

    def overtaken(self: Table, *arguments: object) -> object:
        table.append(rows(a=1), {})
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Table, "adopt", overtaken)
    with pytest.raises(StorageError, match="written for version 1, but 2 is next"):
        frames.append_from_executors(table, computed(spark, 5), {}, ["key"])
    assert table.read()["key"].to_pylist() == ["a"]
    assert {str(file) for file in table.path.glob("*.parquet")} == set(table.snapshot.paths())


def test_rows_that_come_through_here_are_shown_once_they_are_committed(spark: SparkSession, table: Table) -> None:
    seen: list[tuple[int, int]] = []
    frames.append(
        table, computed(spark, 3), {}, ["key"], passing=lambda rows: seen.append((rows.num_rows, table.version))
    )
    assert seen == [(3, 1)]


def test_executors_write_to_s3_themselves_and_only_names_come_to_the_commit(spark: SparkSession, s3: S3Server) -> None:
    table = Table(s3.folder(), pa.schema([("key", pa.string()), ("value", pa.int64())]))
    summary = frames.append_from_executors(table, computed(spark, 100), {"seen-Reports": 7}, ["key"])
    assert sorted(summary["key"].to_pylist()) == sorted(f"k{n}" for n in range(100))
    again = Table(table.folder, table.schema.remove(2))
    assert (again.version, again.marker("seen-Reports")) == (1, 7)
    assert sorted(again.read()["key"].to_pylist()) == sorted(f"k{n}" for n in range(100))
    assert len(again.snapshot.files) == 3

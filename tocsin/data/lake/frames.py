"""Between Spark and the tables: snapshots as DataFrames, and DataFrames committed as rows.

On one machine the rows of a result come to this process in Arrow, and it writes them. On a cluster the executors
write the files, and only their names come here for the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import VERSION, File, Snapshot, Table
from tocsin.data.lake.writer import COMPRESSION, new_name
from tocsin.data.session import is_local

_SPARK_SCHEMAS: dict[pa.Schema, StructType] = {}
_WRITTEN = "path string, size bigint, rows bigint, summary binary"


def whole(spark: SparkSession, table: Table, snapshot: Snapshot) -> DataFrame:
    """All rows of a snapshot, without ``_v``."""
    return of_files(spark, table.schema, snapshot.paths()).drop(VERSION)


def fresh(spark: SparkSession, table: Table, snapshot: Snapshot, since: int) -> DataFrame:
    """The rows of a snapshot that came after version ``since``, without ``_v``."""
    recent = table.recent(since, snapshot.version)
    if recent is not None and recent.num_rows:
        return in_one_piece(spark, recent)
    files = snapshot.after(since)
    rows = of_files(spark, table.schema, [file.path for file in files])
    # A filter on a number makes Spark compile the query anew for each number; files not compacted need none.
    if any(file.oldest <= since for file in files):
        # Of a file that bears no versions all rows are new, or it would not be among these.
        rows = rows.where((F.col(VERSION) > since) | F.col(VERSION).isNull())
    return rows.drop(VERSION)


def local(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A few rows of this process."""
    # In one piece: what follows an empty piece is lost on the way into Spark 4.3.
    return spark.createDataFrame(rows.combine_chunks(), from_arrow_schema(rows.schema))


def in_one_piece(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A few rows of this process as one partition, so that Spark has nothing to exchange."""
    return local(spark, rows).coalesce(1)


def empty(spark: SparkSession, schema: pa.Schema) -> DataFrame:
    """No rows of these columns, known to Spark's optimizer to be none."""
    columns = [f"CAST(NULL AS {f.dataType.simpleString()}) AS `{f.name}`" for f in from_arrow_schema(schema).fields]
    return spark.range(0).selectExpr(*columns).where("false")


def append(
    table: Table,
    frame: DataFrame,
    markers: Mapping[str, int],
    summary: list[str],
    constants: Mapping[str, pa.Scalar] | None = None,
    passing: Callable[[pa.Table], None] | None = None,
    allowed: Callable[[], None] = lambda: None,
) -> pa.Table:
    """Computes ``frame`` and commits its rows; the ``summary`` columns of them, which are small, are given back.

    Where the rows come through this process anyway, they are shown to ``passing`` once they are committed.

    Args:
        constants: columns that are the same in all rows. They are better given here than computed by ``frame``: Spark
            would compile its query anew for each new value.
        allowed: called before anything is committed, and may wait; if it raises, nothing is.
    """
    if not is_local(frame.sparkSession):
        # Executors write files that only a commit looks after.
        allowed()
        return append_from_executors(table, frame, markers, summary, constants)
    schema = _without_version(table)
    rows = with_constants(constants or {}, frame.toArrow()).select(schema.names).cast(schema)
    allowed()
    if rows.num_rows:
        table.append(rows, markers)
    else:
        table.mark(markers)
    if passing is not None:
        passing(rows)
    return rows.select(summary)


def append_from_executors(
    table: Table,
    frame: DataFrame,
    markers: Mapping[str, int],
    summary: list[str],
    constants: Mapping[str, pa.Scalar] | None = None,
) -> pa.Table:
    """As :func:`append`, with the files written where the rows are computed."""
    version = table.version + 1
    stamp = {**(constants or {}), VERSION: pa.scalar(version, pa.int64())}
    writer = _Writer(table.folder, table.schema, stamp, summary)
    written = frame.mapInArrow(writer, _WRITTEN).collect()
    table.adopt([File(row.path, version, version, row.size, row.rows) for row in written], version, markers)
    schema = pa.schema([table.schema.field(name) for name in summary])
    parts = [pa.ipc.open_stream(bytes(row.summary)).read_all() for row in written]
    return pa.concat_tables([schema.empty_table(), *parts])


class _Writer:
    """Writes the rows of one partition into one Parquet file, durable when its name is told; runs in the executors."""

    def __init__(self, folder: Folder, schema: pa.Schema, stamp: Mapping[str, pa.Scalar], summary: list[str]) -> None:
        self._folder, self._schema, self._stamp, self._summary = folder, schema, dict(stamp), summary

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name = new_name()
        kept: list[pa.Table] = []
        sink: pa.NativeFile | None = None
        writer: pq.ParquetWriter | None = None
        for batch in batches:
            rows = self._stamp_rows(batch)
            if rows.num_rows == 0:
                continue
            if sink is None or writer is None:
                sink = self._folder.open_output(name)
                writer = pq.ParquetWriter(sink, self._schema, compression=COMPRESSION)
            writer.write_table(rows)
            kept.append(rows.select(self._summary))
        if sink is not None and writer is not None:
            writer.close()
            size = sink.tell()
            sink.close()
            self._folder.keep(name)
            yield self._report(self._folder.path(name), size, pa.concat_tables(kept))

    def _stamp_rows(self, batch: pa.RecordBatch) -> pa.Table:
        rows = with_constants(self._stamp, pa.Table.from_batches([batch]))
        return rows.select(self._schema.names).cast(self._schema)

    def _report(self, path: str, size: int, kept: pa.Table) -> pa.RecordBatch:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, kept.schema) as stream:
            stream.write_table(kept)
        summary = sink.getvalue().to_pybytes()
        values = {"path": [path], "size": [size], "rows": [kept.num_rows], "summary": [summary]}
        return pa.RecordBatch.from_pydict(values)


def of_files(spark: SparkSession, schema: pa.Schema, paths: list[str]) -> DataFrame:
    """The rows of some files; columns that a file lacks are null."""
    if not paths:
        return empty(spark, schema)
    known = _SPARK_SCHEMAS.get(schema)
    if known is None:
        known = _SPARK_SCHEMAS[schema] = from_arrow_schema(schema)
    return spark.read.schema(known).parquet(*paths)


def with_constants(constants: Mapping[str, pa.Scalar], rows: pa.Table) -> pa.Table:
    """The rows with columns that are the same in all of them."""
    for name, value in constants.items():
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _without_version(table: Table) -> pa.Schema:
    return pa.schema([field for field in table.schema if field.name != VERSION])

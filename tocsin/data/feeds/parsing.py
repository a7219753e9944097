"""Lines of a feed's log into rows of its dataset: what Spark computes of each, and where those go that do not fit.

A row is one struct at first: the dataset's columns, and at its end what could not be read as these. One that is null
while nothing is wrong only tells that its slice has come so far.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from tocsin.schema.definitions import Dataset

SLICE: Final = "__slice"
POSITION: Final = "__position"
DAMAGE: Final = "__damage"
CORRUPT: Final = "__corrupt"
RAW: Final = "__raw"
ROW: Final = "__row"
STORED: Final = "__stored"
DEAD_LETTERS: Final = pa.schema(
    [("slice", pa.int32()), ("position", pa.int64()), ("line", pa.string()), ("reason", pa.string())]
)


def expressions(dataset: Dataset, whole_lines: bool = False) -> list[Column]:
    """What Spark computes for each line of a log: its place, and its JSON as one struct.

    The line itself is there only where it cannot be read, unless ``whole_lines`` are wanted.
    """
    columns = ", ".join(f"`{c.name}` {c.type.ddl}" for c in dataset.columns)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    raw = F.when(F.lit(whole_lines) | F.col("damage").isNotNull(), F.col("line")).alias(RAW)
    row = F.from_json("line", f"{columns}, `{CORRUPT}` STRING", options).alias(ROW)
    return [*(F.col(name).alias(f"__{name}") for name in ("slice", "position", "damage")), raw, row]


def flatten(rows: pa.Table, dataset: Dataset) -> pa.Table:
    """What was computed, with a column for each of the dataset's, and whether there is a row at all."""
    row = rows[ROW].combine_chunks()
    rows, fields = rows.append_column(STORED, row.is_valid()), row.flatten()
    for name, field in zip((*(column.name for column in dataset.columns), CORRUPT), fields, strict=True):
        rows = rows.append_column(name, field)
    return rows.drop_columns(ROW)


def is_whole(rows: pa.Table) -> pa.ChunkedArray:
    """For each row whether it can be stored."""
    return pc.and_(pc.is_null(rows[DAMAGE]), pc.is_null(rows[CORRUPT]))


def dead_letters(rows: pa.Table, dataset: Dataset) -> pa.Table:
    """Rows that cannot be stored, with the reason."""
    damage = rows[DAMAGE].combine_chunks()
    reasons = pc.if_else(pc.is_null(damage), f"does not fit the columns of {dataset.name}", damage)
    lines = pc.coalesce(rows[CORRUPT], rows[RAW])
    return pa.table([rows[SLICE], rows[POSITION], lines, reasons], schema=DEAD_LETTERS)

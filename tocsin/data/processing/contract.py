"""What a function may give for a batch: rows of the dataset's columns, as many as it likes within bounds."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_SPARE_ROWS: Final = 1000
_SPARE_BYTES: Final = 4 << 20
_TIMES: Final = 10


class FunctionFaultError(Exception):
    """A function has failed on the records it was given; the message says how."""


def check_given(given: object, batch: pa.RecordBatch, key: str | None) -> pa.RecordBatch:
    """What a function gave for ``batch``, with its columns in order; FunctionFaultError if that cannot be stored.

    Args:
        key: the column that must not be null.
    """
    if not isinstance(given, pa.RecordBatch):
        raise FunctionFaultError(f"it gave {type(given).__name__}, not a pyarrow.RecordBatch")
    wanted = batch.schema
    if sorted(given.schema.names) != sorted(wanted.names):
        raise FunctionFaultError(f"it gave the columns {_list(given.schema.names)} instead of {_list(wanted.names)}")
    _check_size(given, batch)
    columns = [_column(given.column(field.name), field) for field in wanted]
    if key is not None and columns[wanted.names.index(key)].null_count:
        raise FunctionFaultError(f"it gave a row without {key}, the primary key")
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def check_keys(given: pa.Array, had: pa.Array, key: str) -> None:
    """Raises FunctionFaultError for a key that none of the records has: its slice may be somebody else's."""
    strange = given.filter(pc.invert(pc.is_in(given, value_set=had)))
    if len(strange):
        raise FunctionFaultError(
            f"it gave {key} = {str(strange[0].as_py())[:100]!r}, a key that no record had which it was given: "
            "where nodes share slices, the primary key stays as it is"
        )


def _check_size(given: pa.RecordBatch, batch: pa.RecordBatch) -> None:
    rows, size = _SPARE_ROWS + _TIMES * batch.num_rows, _SPARE_BYTES + _TIMES * batch.nbytes
    if given.num_rows > rows:
        raise FunctionFaultError(
            f"it gave {given.num_rows:,} rows for {_records(batch)}, of which at most {rows:,} are taken"
        )
    if given.nbytes > size:
        raise FunctionFaultError(
            f"it gave {given.nbytes:,} bytes for {_records(batch)}, of which at most {size:,} are taken"
        )


def _column(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    # What other libraries make of a text.
    texts = pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)
    if pa.types.is_string(field.type) and texts:
        return column.cast(field.type)
    raise FunctionFaultError(f"it gave the column {field.name} as {column.type} instead of {field.type}")


def _records(batch: pa.RecordBatch) -> str:
    return f"{batch.num_rows:,} record{'' if batch.num_rows == 1 else 's'}"


def _list(names: list[str]) -> str:
    shown = ", ".join(str(name)[:40] for name in names[:20])
    return f"{shown or 'none'}{' …' if len(names) > 20 else ''}"

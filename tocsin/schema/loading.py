"""Files as tables: what ``LOAD DATASET`` reads, checked against the dataset's columns before anything is stored.

CSV (with a header row), JSON, NDJSON and Parquet are told apart by the file's ending. A file is taken as a whole or
refused: a reference dataset with half its rows would be worse than none.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from tocsin.errors import InvalidError, NotFoundError
from tocsin.model import names
from tocsin.model.quoting import quote_value
from tocsin.schema.arrow import arrow_type
from tocsin.schema.definitions import Column, Dataset, DatasetKind
from tocsin.schema.json_types import attribute
from tocsin.schema.records import RecordDecoder
from tocsin.schema.scalars import scalar
from tocsin.schema.types import Kind

# Arrow's CSV reader takes these in fewer forms than records do: they are read as text and converted here.
_READ_AS_TEXT: Final = frozenset({Kind.DECIMAL, Kind.TIMESTAMP})
_REFUSALS_SHOWN: Final = 3


def load_file(dataset: Dataset, path: str | Path) -> pa.Table:
    """The rows of the file: the dataset's columns, in their order, with their Arrow types.

    Raises NotFoundError when there is no such file, and InvalidError, with row and column as far as they are known,
    when it does not fit the dataset, lacks a primary key, or repeats one of a reference dataset.
    """
    path = Path(path)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InvalidError(f"cannot load '{path}': the name must end in {', '.join(_READERS)}")
    try:
        table = read(dataset, path)
        _check_key(dataset, table)
    except FileNotFoundError:
        raise NotFoundError(f"no file '{path}' where the data cluster runs") from None
    except OSError as error:
        raise InvalidError(f"cannot read '{path}': {error.strerror or error}") from None
    except (InvalidError, ValueError, pa.ArrowException, csv.Error) as error:
        raise InvalidError(f"{path.name}: {error}") from None
    return table


def _read_csv(dataset: Dataset, path: Path) -> pa.Table:
    header = _csv_header(path)
    _check_columns(dataset, header)
    if nested := next((column for column in dataset.columns if not column.type.scalar), None):
        raise InvalidError(f"column '{nested.name}' is {nested.type.ddl}, which CSV cannot hold; use .ndjson")
    texts = {column.name for column in dataset.columns if column.type.kind in _READ_AS_TEXT}
    types = {c.name: pa.string() if c.name in texts else arrow_type(c.type) for c in dataset.columns}
    try:
        table = arrow_csv.read_csv(
            path,
            # Only the single-threaded reader knows the numbers of the rows it complains about.
            read_options=arrow_csv.ReadOptions(use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise InvalidError(_with_column_name(str(error), header)) from None
    columns = [
        _from_text(column, table[column.name]) if column.name in texts else _finite(column, table[column.name])
        for column in dataset.columns
    ]
    return pa.table(columns, schema=_schema(dataset))


def _csv_header(path: Path) -> list[str]:
    # Bytes that are not UTF-8 are replaced here and refused by Arrow, which tells their row.
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = next(csv.reader(file), None)
    if not header:
        raise InvalidError("empty file; the first row must name the columns")
    return header


def _with_column_name(message: str, header: Sequence[str]) -> str:
    """Arrow's message, in which columns are numbers counted from 0, with the column's name."""
    return re.sub(r"In CSV column #(\d+)", lambda found: f"column '{header[int(found[1])]}'", message)


def _from_text(column: Column, texts: pa.ChunkedArray) -> pa.Array:
    values: list[object] = []
    for row, text in enumerate(texts.to_pylist(), start=2):
        try:
            values.append(None if text is None else scalar(column.type, text))
        except ValueError as error:
            raise InvalidError(f"column '{column.name}': Row #{row}: {error}") from None
    return pa.array(values, type=arrow_type(column.type))


def _finite(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """``values``, which must not hold the NaN or infinity that CSV and Parquet can express and JSON cannot."""
    if column.type.kind in (Kind.FLOAT, Kind.DOUBLE) and pc.any(pc.invert(pc.is_finite(values))).as_py():
        raise InvalidError(f"column '{column.name}': NaN and infinity are not allowed; leave the value empty")
    return values


def _read_json(dataset: Dataset, path: Path) -> pa.Table:
    content_type = "application/json" if path.suffix.lower() == ".json" else "application/x-ndjson"
    decoded = RecordDecoder(dataset).read(path.read_bytes(), content_type)
    if decoded.refusals:
        shown_refusals = [f"record {refused.index + 1}: {refused.reason}" for refused in decoded.refusals]
        more = len(shown_refusals) - _REFUSALS_SHOWN
        ending = f"; and {more} more" if more > 0 else ""
        raise InvalidError("; ".join(shown_refusals[:_REFUSALS_SHOWN]) + ending)
    columns = [
        pa.array(
            [_plain(getattr(record, attribute(number))) for record in decoded.records], type=arrow_type(column.type)
        )
        for number, column in enumerate(dataset.columns)
    ]
    return pa.table(columns, schema=_schema(dataset))


def _plain(value: Any) -> Any:
    """``value`` with its structs as dicts, as Arrow takes them."""
    return msgspec.to_builtins(value, builtin_types=(datetime, date, Decimal))


def _read_parquet(dataset: Dataset, path: Path) -> pa.Table:
    table = parquet.read_table(path)
    _check_columns(dataset, table.column_names)
    return pa.table([_cast(column, table[column.name]) for column in dataset.columns], schema=_schema(dataset))


def _cast(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    wanted = arrow_type(column.type)
    if fault := _fault(values.type, wanted):
        raise InvalidError(f"column '{column.name}': {values.type} is not taken for {column.type.ddl}: {fault}")
    try:
        cast = pc.cast(values, wanted)
    except pa.ArrowException as error:
        message = f"column '{column.name}': {values.type} does not fit {column.type.ddl}: {error}"
        raise InvalidError(message) from None
    return _finite(column, cast)


def _fault(found: pa.DataType, wanted: pa.DataType) -> str | None:
    """Why values of one type must not become another, although Arrow would guess or round without a word."""
    if pa.types.is_dictionary(found):
        return _fault(found.value_type, wanted)
    if pa.types.is_nested(found) and pa.types.is_nested(wanted):
        return next((fault for pair in _inner(found, wanted) if (fault := _fault(*pair))), None)
    if pa.types.is_timestamp(wanted) and not (pa.types.is_string(found) or _is_instant(found)):
        return "it has no zone; write the column as a time in UTC"
    if pa.types.is_date(wanted) and pa.types.is_timestamp(found):
        return "the time of day would be lost; write the column as a date"
    if pa.types.is_decimal(wanted) and pa.types.is_floating(found):
        return "digits would be rounded; write the column as a decimal"
    return None


def _inner(found: pa.DataType, wanted: pa.DataType) -> list[tuple[pa.DataType, pa.DataType]]:
    """The types inside two nested types, side by side; by their names in a struct."""
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        known = {field.name: field.type for field in found}
        return [(known[field.name], field.type) for field in wanted if field.name in known]
    count = min(found.num_fields, wanted.num_fields)
    return [(found.field(number).type, wanted.field(number).type) for number in range(count)]


def _is_instant(type_: pa.DataType) -> bool:
    return pa.types.is_timestamp(type_) and type_.tz is not None


def _schema(dataset: Dataset) -> pa.Schema:
    return pa.schema([(column.name, arrow_type(column.type)) for column in dataset.columns])


def _check_columns(dataset: Dataset, found: Sequence[str]) -> None:
    wanted = [column.name for column in dataset.columns]
    for name in found:
        if name not in wanted:
            raise InvalidError(f"unknown column {quote_value(name)}{names.suggestion(name, wanted)}")
    if missing := [name for name in wanted if name not in found]:
        raise InvalidError(f"missing column {', '.join(missing)}; dataset {dataset.name} has {', '.join(wanted)}")
    if len(found) != len(wanted):
        raise InvalidError(f"a column occurs twice among {', '.join(found)}")


def _check_key(dataset: Dataset, table: pa.Table) -> None:
    if dataset.primary_key is None:
        return
    keys = table[dataset.primary_key]
    if keys.null_count:
        row = pc.index(pc.is_null(keys), True).as_py()
        raise InvalidError(f"record {row + 1}: primary key '{dataset.primary_key}' is empty")
    if dataset.kind is not DatasetKind.REFERENCE or pc.count_distinct(keys).as_py() == len(keys):
        return
    counts = pc.value_counts(keys.combine_chunks())
    twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
    raise InvalidError(f"primary key '{dataset.primary_key}': {quote_value(twice)} occurs more than once")


_READERS: Final[dict[str, Callable[[Dataset, Path], pa.Table]]] = {
    ".csv": _read_csv,
    ".json": _read_json,
    ".ndjson": _read_json,
    ".jsonl": _read_json,
    ".parquet": _read_parquet,
}

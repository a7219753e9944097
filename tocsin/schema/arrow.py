"""Column types as those of Arrow, in which records are stored and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from tocsin.schema.definitions import Column
from tocsin.schema.types import ColumnType, Kind


def arrow_type(type_: ColumnType) -> pa.DataType:
    """The Arrow type that holds it; a TIMESTAMP is microseconds in UTC."""
    match type_.kind:
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.ARRAY:
            return pa.list_(arrow_type(type_.inner))
        case Kind.MAP:
            return pa.map_(pa.string(), arrow_type(type_.inner))
        case Kind.STRUCT:
            return pa.struct([(field.name, arrow_type(field.type)) for field in type_.fields])
    return _ARROW[type_.kind]


def record_schema(columns: Sequence[Column]) -> pa.Schema:
    """One column per column of a dataset."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def parameter_schema(parameters: Sequence[Column]) -> pa.Schema:
    """One non-null column per parameter, under the parameter's name."""
    return pa.schema([pa.field(column.name, arrow_type(column.type), nullable=False) for column in parameters])


_ARROW: Final = {
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}

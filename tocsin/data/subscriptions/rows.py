"""Subscriptions as rows of an Arrow table: the id, then the parameter values in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from tocsin.data.ids import IdArray
from tocsin.errors import InvalidError
from tocsin.model.bounds import check_parameters
from tocsin.model.quoting import quote_value
from tocsin.schema.arrow import parameter_schema
from tocsin.schema.definitions import Channel, Column
from tocsin.schema.parameters import canonical

BE: Final = "__be"

Row = tuple[object, ...]


def schema(parameters: Sequence[Column]) -> pa.Schema:
    """The columns ``__be``, ``__p0``, ``__p1``, …: names that no parameter and no column can have."""
    values = [column.with_name(f"__p{number}") for number, column in enumerate(parameter_schema(parameters))]
    return pa.schema([pa.field(BE, pa.int64(), nullable=False), *values])


def canonical_rows(channel: Channel, values: Sequence[Mapping[str, object]], most: int) -> list[Row]:
    """The values of each subscription in canonical form, of at most so many bytes; one bad one refuses all, and is
    named by its index."""
    rows: list[Row] = []
    try:
        for value in values:
            if not isinstance(value, Mapping):
                raise InvalidError(f"expected an object with the parameters, got {quote_value(value)}")
            row = canonical(channel.parameters, value)
            check_parameters(row, most)
            rows.append(row)
    except InvalidError as error:
        if len(values) == 1:
            raise InvalidError(f"{channel.name}: {error}") from None
        raise InvalidError(f"subscription {len(rows)} to {channel.name}: {error}; none were attached") from None
    return rows


def columns(parameters: Sequence[Column], rows: Sequence[Row]) -> list[pa.Array]:
    """One array per parameter."""
    types = parameter_schema(parameters).types
    if not rows:
        return [pa.array([], type_) for type_ in types]
    return [pa.array(values, type_) for values, type_ in zip(zip(*rows, strict=True), types, strict=True)]


def table(parameters: Sequence[Column], ids: IdArray, values: Sequence[pa.Array]) -> pa.Table:
    """Ids and their values side by side."""
    return pa.Table.from_arrays([pa.array(ids), *values], schema=schema(parameters))

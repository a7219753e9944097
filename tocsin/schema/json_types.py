"""Column types as the types msgspec decodes JSON with, so that a record is checked while it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec

from tocsin.schema.types import INTEGER_BITS, ColumnType, Kind, integer_range

LARGEST_FLOAT: Final = 3.4028234663852886e38
_PYTHON: Final[dict[Kind, Any]] = {
    Kind.STRING: str,
    Kind.BOOLEAN: bool,
    Kind.FLOAT: Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)],
    Kind.DOUBLE: float,
    Kind.DECIMAL: Decimal,
    Kind.DATE: date,
    Kind.TIMESTAMP: datetime,
}


def python_type(type_: ColumnType) -> Any:
    """The type that takes its JSON values and no others; null is allowed inside a value, not as the value itself.

    Two things are left to :mod:`tocsin.schema.normal`: the digits of a DECIMAL, and the instant of a TIMESTAMP, which
    may come with any offset.
    """
    match type_.kind:
        case Kind.ARRAY:
            return list[python_type(type_.inner) | None]  # type: ignore[misc]
        case Kind.MAP:
            return dict[str, python_type(type_.inner) | None]  # type: ignore[misc]
        case Kind.STRUCT:
            return record_type((field.name, field.type) for field in type_.fields)
        case kind if kind in INTEGER_BITS:
            lowest, highest = integer_range(kind)
            return Annotated[int, msgspec.Meta(ge=lowest, le=highest)]
    return _PYTHON[type_.kind]


def record_type(fields: Iterable[tuple[str, ColumnType]], required: Collection[str] = ()) -> type[msgspec.Struct]:
    """A struct for JSON objects of these fields and no others; all but the ``required`` may be null or missing.

    The n-th field is the attribute :func:`attribute` (n), whatever its name, which may be a keyword of Python.
    """
    members: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    renamed: dict[str, str] = {}
    for number, (name, type_) in enumerate(fields):
        renamed[attribute(number)] = name
        decoded = python_type(type_)
        optional = (attribute(number), decoded | None, None)
        members.append((attribute(number), decoded) if name in required else optional)
    return msgspec.defstruct(
        "Record", members, rename=renamed, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False
    )


def attribute(number: int) -> str:
    """The attribute of a :func:`record_type` that holds its field ``number``, counted from 0."""
    return f"f{number}"

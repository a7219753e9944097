"""Values in their one normal form: a TIMESTAMP in UTC, a DECIMAL with its column's digits.

JSON decoding alone leaves these two open; Spark, the slicing of feeds and the equality of subscriptions need them
closed. A value is kept exactly or refused, never rounded: everything here raises ValueError for one that has no normal
form.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from tocsin.schema.json_types import attribute
from tocsin.schema.types import ColumnType, Kind

Normaliser = Callable[[Any], Any]

_FRACTION: Final = re.compile(r"\.\d{6}(\d+)")


def utc(value: datetime) -> datetime:
    """The same instant in UTC. Without a zone it could be any of two dozen instants, and is refused."""
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None:
        raise ValueError("without a zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("outside the years 1 to 9999 in UTC") from None


def quantise(value: Decimal, precision: int, scale: int) -> Decimal:
    """The same number with ``scale`` digits after the point, and at most ``precision`` digits in all."""
    try:
        fitted = value.quantize(Decimal(1).scaleb(-scale), context=Context(prec=precision))
    except InvalidOperation:
        raise ValueError(f"more than {precision - scale} digits before the point") from None
    if not fitted.is_finite():
        raise ValueError("not a finite number")
    if fitted != value:
        raise ValueError(f"more than {scale} digits after the point")
    return fitted if fitted else abs(fitted)


def finer_than_microseconds(text: str) -> bool:
    """Whether the text of a time has digits that no TIMESTAMP keeps, other than zeros."""
    fraction = _FRACTION.search(text)
    return bool(fraction and fraction[1].strip("0"))


def holds(kind: Kind, number: int) -> bool:
    """Whether a FLOAT or a DOUBLE is this whole number: beyond 2^24 and 2^53, not all of them can be.

    A DOUBLE is also its shortest digits, as JavaScript writes 2^60: 1152921504606847000.
    """
    try:
        if kind is Kind.FLOAT:
            return bool(number == struct.unpack("<f", struct.pack("<f", number))[0])
        return number in (double := float(number), Decimal(repr(double)))
    except OverflowError:
        return False


@lru_cache(maxsize=1024)
def normaliser(type_: ColumnType) -> Normaliser | None:
    """What brings a decoded, non-null value of this type into normal form; None when decoding already did."""
    match type_.kind:
        case Kind.TIMESTAMP:
            return utc
        case Kind.DECIMAL:
            precision, scale = type_.precision, type_.scale
            return lambda value: quantise(value, precision, scale)
        case Kind.ARRAY | Kind.MAP:
            return _each(normaliser(type_.inner), type_.kind)
        case Kind.STRUCT:
            return _fields([normaliser(field.type) for field in type_.fields])
    return None


def _each(inner: Normaliser | None, kind: Kind) -> Normaliser | None:
    if inner is None:
        return None

    def array(values: list[Any]) -> list[Any]:
        return [None if value is None else inner(value) for value in values]

    def mapping(values: dict[str, Any]) -> dict[str, Any]:
        return {key: None if value is None else inner(value) for key, value in values.items()}

    return array if kind is Kind.ARRAY else mapping


def _fields(normalisers: list[Normaliser | None]) -> Normaliser | None:
    active = [(attribute(number), inner) for number, inner in enumerate(normalisers) if inner is not None]
    if not active:
        return None

    def structure(value: Any) -> Any:
        for name, inner in active:
            member = getattr(value, name)
            if member is not None:
                setattr(value, name, inner(member))
        return value

    return structure

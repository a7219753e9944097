"""Values in their one normal form: a TIMESTAMP in UTC, a DECIMAL with its column's digits.

JSON decoding alone leaves these two open; Spark, the slicing of feeds and the equality of subscriptions need them
closed. Everything here raises ValueError for a value that has no normal form.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from tocsin.model.json_types import attribute
from tocsin.model.types import ColumnType, Kind

Normaliser = Callable[[Any], Any]


def utc(value: datetime) -> datetime:
    """The same instant in UTC; a time without an offset is taken to be UTC."""
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("outside the years 1 to 9999 in UTC") from None


def quantised(value: Decimal, precision: int, scale: int) -> Decimal:
    """Rounded half up to ``scale`` digits after the point, as Spark does; at most ``precision`` digits in all."""
    try:
        rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=precision))
    except InvalidOperation:
        raise ValueError(f"more than {precision - scale} digits before the point") from None
    if not rounded.is_finite():
        raise ValueError("not a finite number")
    return rounded if rounded else abs(rounded)


@lru_cache(maxsize=1024)
def normaliser(type_: ColumnType) -> Normaliser | None:
    """What brings a decoded, non-null value of this type into normal form; None when decoding already did."""
    match type_.kind:
        case Kind.TIMESTAMP:
            return utc
        case Kind.DECIMAL:
            precision, scale = type_.precision, type_.scale
            return lambda value: quantised(value, precision, scale)
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

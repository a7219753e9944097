"""Single values given from outside, such as a subscription's parameters: brought to their type's normal form.

Strict but sensible: nothing is guessed from text (``"5"`` is no INT), yet numbers that are equal are one value
(5.0 is the INT 5, and 5 is the DOUBLE 5.0). What a type cannot hold as it was given is refused, never rounded; only
that FLOAT and DOUBLE are binary, and hold 0.1 as the number next to it, is what one has chosen with them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from tocsin.model.quoting import quote_value
from tocsin.schema import normal
from tocsin.schema.types import INTEGER_BITS, ColumnType, Kind, integer_range

_EXAMPLES: Final = {
    Kind.DATE: 'text such as "2026-01-31"',
    Kind.TIMESTAMP: 'RFC 3339 text with a zone and at most microseconds, such as "2026-01-31T12:00:00Z" or "…+02:00"',
}
# Up to these, a number that was written in decimal digits or as a whole one comes out of JSON as it went in.
_DIGITS_OF_DOUBLE: Final = 15
_WHOLE: Final = {Kind.FLOAT: 1 << 24, Kind.DOUBLE: 1 << 53}


def scalar(type_: ColumnType, value: object) -> object:
    """``value`` as its type's canonical Python object; ValueError says what was expected and what was given."""
    convert = _CONVERSIONS.get(type_.kind)
    if convert is None:
        raise ValueError(f"{type_.ddl} is not a single value")
    try:
        return convert(type_, value)
    except (TypeError, ValueError, OverflowError, InvalidOperation):
        raise ValueError(mismatch(type_, quote_value(value))) from None


def mismatch(type_: ColumnType, found: str) -> str:
    """The sentence for a value, shown as JSON text, that is not of its type."""
    expected = type_.ddl
    if type_.kind in INTEGER_BITS and found.lstrip("-").isdecimal():
        lowest, highest = integer_range(type_.kind)
        expected += f" ({lowest} to {highest})"
    elif type_.kind in _EXAMPLES:
        expected += f" ({_EXAMPLES[type_.kind]})"
    elif type_.kind is Kind.DECIMAL:
        as_text = f"; more than {_DIGITS_OF_DOUBLE} as text" if type_.precision > _DIGITS_OF_DOUBLE else ""
        before = type_.precision - type_.scale
        expected += f" (at most {before} digits before the point and {type_.scale} after{as_text})"
    elif type_.kind in _WHOLE and found.lstrip("-").isdecimal():
        expected += f" (whole numbers up to {_WHOLE[type_.kind]}, beyond that only those it holds exactly)"
    return f"expected {expected}, got {found}"


def _string(_: ColumnType, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    if not value.isascii():
        value.encode()  # half a surrogate pair is no character: UnicodeEncodeError is a ValueError
    return value


def _boolean(_: ColumnType, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return value


def _integer(type_: ColumnType, value: object) -> int:
    number = _number(value)
    whole = int(number)
    lowest, highest = integer_range(type_.kind)
    if whole != number or not lowest <= whole <= highest:
        raise ValueError
    if isinstance(number, float) and abs(whole) > _WHOLE[Kind.DOUBLE]:
        raise ValueError  # it may have been another one before it was a float
    return whole


def _double(type_: ColumnType, value: object) -> float:
    given = _number(value)
    number = float(given)
    if not math.isfinite(number) or (isinstance(given, int) and not normal.holds(type_.kind, given)):
        raise ValueError
    return number + 0.0  # -0.0 becomes 0.0


def _float(type_: ColumnType, value: object) -> float:
    narrowed: float = struct.unpack("<f", struct.pack("<f", _double(type_, value)))[0]
    return narrowed


def _decimal(type_: ColumnType, value: object) -> Decimal:
    if not isinstance(value, Decimal | str):
        value = _digits(_number(value))
    return normal.quantise(Decimal(value), type_.precision, type_.scale)


def _digits(number: int | float) -> Decimal:
    """A number as it was written; one of more digits than a float keeps has to be given as text."""
    written = Decimal(repr(number))
    if isinstance(number, float) and len(written.normalize().as_tuple().digits) > _DIGITS_OF_DOUBLE:
        raise ValueError
    return written


def _date(_: ColumnType, value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    return msgspec.convert(_string(_, value), date)


def _timestamp(_: ColumnType, value: object) -> datetime:
    if isinstance(value, datetime):
        return normal.utc(value)
    text = _string(_, value)
    if normal.finer_than_microseconds(text):
        raise ValueError
    return normal.utc(msgspec.convert(text, datetime))


_CONVERSIONS: Final[dict[Kind, Callable[[ColumnType, Any], object]]] = {
    Kind.STRING: _string,
    Kind.BOOLEAN: _boolean,
    **dict.fromkeys(INTEGER_BITS, _integer),
    Kind.FLOAT: _float,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
}

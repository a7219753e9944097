"""Which slice a record goes to: a function of one column's value, chosen by name.

The same value goes to the same slice for the life of a feed, in every process and after every restart; a new assignment
is one function here and one line in :data:`ASSIGNMENTS`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import blake2b
from math import isfinite
from typing import Protocol

from tocsin.errors import InvalidError


class SliceAssignment(Protocol):
    """Maps a column's value to a slice from 0 up to ``slices``; None, a missing value, goes to slice 0."""

    def __call__(self, value: object, slices: int, /) -> int:
        """The slice of ``value``."""


def hashed(value: object, slices: int) -> int:
    """Spread values evenly by a stable hash of their text."""
    if value is None:
        return 0
    digest = blake2b(canonical_text(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % slices


ASSIGNMENTS: dict[str, SliceAssignment] = {"hash": hashed}
DEFAULT = "hash"


def assignment(name: str = DEFAULT) -> SliceAssignment:
    """The assignment of that name."""
    try:
        return ASSIGNMENTS[name]
    except KeyError:
        known = ", ".join(sorted(ASSIGNMENTS))
        raise InvalidError(f"there is no slice assignment {name!r}: choose one of {known}") from None


def canonical_text(value: object) -> str:
    """One text for all ways to write a value: 1, 1.0 and Decimal("1.00") are the same, as are equal instants."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return _number_text(value)
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
    raise InvalidError(f"a record cannot be assigned to a slice by a value of type {type(value).__name__}")


def _number_text(value: float | Decimal) -> str:
    if isfinite(value) and value == int(value):
        return str(int(value))
    return str(value.normalize()) if isinstance(value, Decimal) else repr(value)

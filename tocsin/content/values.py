"""What publications are made of: attributes by name, each with a string, a number or a boolean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from tocsin.errors import InvalidError

Value = str | int | float | bool
Publication = Mapping[str, Value]

LARGEST_NUMBER: Final = 2**53
"""Whole numbers beyond this one are not told apart from their neighbours: numbers are double precision."""
MOST_CHARACTERS: Final = 1024
MOST_NAME_CHARACTERS: Final = 128
MOST_ATTRIBUTES: Final = 64


class ValueKind(StrEnum):
    """Values of different kinds are never equal, and neither is less than the other."""

    # As a string it is hashed much sooner than as a plain Enum, which matters where filters are looked up.

    BOOLEAN = "boolean"
    NUMBER = "number"
    STRING = "string"


def kind_of(value: Value) -> ValueKind:
    """What a value is."""
    if isinstance(value, str):
        return ValueKind.STRING
    return ValueKind.BOOLEAN if isinstance(value, bool) else ValueKind.NUMBER


def check_value(value: object, what: str) -> Value:
    """A value as it is compared, numbers as double precision; what cannot be one is an InvalidError."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _check_number(value, what)
    if isinstance(value, str):
        return _check_text(value, what)
    raise InvalidError(f"{what} is a {type(value).__name__}; values are strings, numbers, true or false")


def check_name(name: object) -> str:
    """An attribute's name; what cannot be one is an InvalidError."""
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME_CHARACTERS or not name.isprintable() or "`" in name:
        raise InvalidError(
            f"{str(name)[:40]!r} is no attribute: names have 1 to {MOST_NAME_CHARACTERS} printable characters, "
            "none of them a backtick"
        )
    return name


def check_publication(publication: Mapping[Any, Any]) -> dict[str, Value]:
    """A publication as it is matched; what cannot be one is an InvalidError. An attribute that is None is left out."""
    if len(publication) > MOST_ATTRIBUTES:
        raise InvalidError(f"a publication with {len(publication)} attributes; at most {MOST_ATTRIBUTES} are taken")
    given = {check_name(name): value for name, value in publication.items() if value is not None}
    return {name: check_value(value, f"attribute {name!r}") for name, value in given.items()}


def _check_number(value: float, what: str) -> float:
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise InvalidError(f"{what} is a number beyond 2^53, which cannot be told from its neighbours; use a string")
    if not math.isfinite(value):
        raise InvalidError(f"{what} is {value}; numbers are finite")
    # So that 0 and -0 are one value in every respect.
    return float(value) + 0.0


def _check_text(value: str, what: str) -> str:
    if len(value) > MOST_CHARACTERS:
        raise InvalidError(f"{what} has {len(value):,} characters; at most {MOST_CHARACTERS:,} are taken")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidError(f"{what} has half a surrogate pair in it, which is no character")
    return value

"""Why a record was refused, in words that name the field, what it held and what was expected.

Decoding stops at the first problem with a message about Python types. This looks again, slowly, at a record that
already failed, keeping its parts as raw JSON so that they can be shown as they were sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from tocsin.errors import InvalidError
from tocsin.model import names
from tocsin.model.quoting import quote_value, shorten
from tocsin.schema.json_types import python_type
from tocsin.schema.normal import finer_than_microseconds, holds, normaliser
from tocsin.schema.scalars import mismatch
from tocsin.schema.types import ColumnType, Kind

# What decoding untrusted bytes may raise: malformed or mistyped JSON, bytes that are not UTF-8, nesting too deep.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Fields = Sequence[tuple[str, ColumnType]]


def refusal(record: bytes | Raw, columns: Fields, required: Collection[str]) -> str:
    """The first reason to refuse ``record``, which must have failed to decode as an object of these columns."""
    try:
        return _reason(record, columns, required)
    except UNDECODABLE as error:
        return describe_undecodable(error)


def inexact(record: bytes | Raw, columns: Fields) -> str | None:
    """Why ``record``, which could be decoded, must be refused all the same: a value would not be what was sent.

    Decoding rounds a time finer than microseconds, and whole numbers that a FLOAT or DOUBLE cannot hold.
    """
    return _explain_wrong_field("", msgspec.json.decode(record, type=dict[str, Raw]), columns)


def describe_undecodable(error: Exception) -> str:
    """The sentence for text that is not JSON at all, from one of the UNDECODABLE errors."""
    match error:
        case RecursionError():
            return "JSON nested too deeply"
        case UnicodeDecodeError():
            return f"not UTF-8 text: {error.reason}"
    # msgspec says "JSON is malformed: ..." or "Input data was truncated".
    return f"not JSON: {str(error).removeprefix('JSON is malformed: ')}"


def undecodable(error: Exception, what: str) -> InvalidError:
    """The error for a ``what`` whose decoding raised one of the UNDECODABLE."""
    if isinstance(error, msgspec.ValidationError):
        return InvalidError(f"the {what} does not fit: {error}")
    return InvalidError(f"the {what} is {describe_undecodable(error)}")


def _reason(record: bytes | Raw, columns: Fields, required: Collection[str]) -> str:
    members = _parts(record, dict[str, Raw])
    if members is None:
        return f"expected an object, got {_show(record)}"
    missing = (name for name, _ in columns if name in required and _is_null(members.get(name, b"null")))
    return (
        _explain_unknown_field("", members, columns)
        or _first(f"field '{name}': must be present and not null" for name in missing)
        or _explain_wrong_field("", members, columns)
        or f"not a record: {_show(record)}"
    )


def _explain_unknown_field(path: str, members: Mapping[str, Raw], fields: Fields) -> str | None:
    known = [name for name, _ in fields]
    for name in sorted(members.keys() - known):
        hint = names.suggestion(name, known) or f"; expected are {', '.join(known)}"
        return f"unknown field '{shorten(path + name)}'{hint}"
    return None


def _explain_wrong_field(path: str, members: Mapping[str, Raw], fields: Fields) -> str | None:
    return _first(_problem(path + name, type_, members[name]) for name, type_ in fields if name in members)


def _problem(path: str, type_: ColumnType, value: Raw) -> str | None:
    """What is wrong with the value at ``path``, or with the first wrong part of it; None when all is right."""
    if _is_null(value):
        return None
    if type_.kind is Kind.ARRAY and (elements := _parts(value, list[Raw])) is not None:
        return _first(_problem(f"{path}[{number}]", type_.inner, item) for number, item in enumerate(elements))
    if type_.kind is Kind.MAP and (entries := _parts(value, dict[str, Raw])) is not None:
        return _first(_problem(f"{path}[{quote_value(key)}]", type_.inner, item) for key, item in entries.items())
    if type_.kind is Kind.STRUCT and (members := _parts(value, dict[str, Raw])) is not None:
        fields = [(field.name, field.type) for field in type_.fields]
        return _explain_unknown_field(f"{path}.", members, fields) or _explain_wrong_field(f"{path}.", members, fields)
    if type_.scalar and _fits(type_, value):
        return None
    return f"field '{shorten(path)}': {mismatch(type_, _show(value))}"


def _first(problems: Iterable[str | None]) -> str | None:
    return next((problem for problem in problems if problem), None)


def _parts(value: bytes | Raw, container: Any) -> Any:
    """The members or elements of ``value``, or None when it is not such a container."""
    try:
        return msgspec.json.decode(value, type=container)
    except msgspec.ValidationError:
        return None


def _fits(type_: ColumnType, value: Raw) -> bool:
    normalise = normaliser(type_)
    try:
        decoded = _decoder(type_).decode(value)
        if normalise:
            normalise(decoded)
        return _exact(type_.kind, value)
    except (*UNDECODABLE, ValueError):
        return False


def _exact(kind: Kind, value: Raw) -> bool:
    """Whether the text of a value of this kind says nothing that decoding loses."""
    if kind is Kind.TIMESTAMP:
        return not finer_than_microseconds(msgspec.json.decode(value, type=str))
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        text = bytes(memoryview(value))
        return not text.removeprefix(b"-").isdigit() or holds(kind, int(text))
    return True


@lru_cache(maxsize=1024)
def _decoder(type_: ColumnType) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(python_type(type_))


def _is_null(value: bytes | Raw) -> bool:
    return bytes(memoryview(value)[:4]) == b"null"


def _show(value: bytes | Raw) -> str:
    return shorten(bytes(memoryview(value)[:200]).decode("utf-8", "replace"))

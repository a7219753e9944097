"""A subscription's parameter values: typed and canonical, so that equal subscriptions are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tocsin.errors import InvalidError
from tocsin.model import names
from tocsin.model.quoting import quote_value
from tocsin.schema.definitions import Column
from tocsin.schema.scalars import scalar


def canonical(parameters: Sequence[Column], values: Mapping[str, object]) -> tuple[object, ...]:
    """The values in the parameters' order and normal form; each parameter must be given, by its exact name, not null.

    Integers are also taken as integral floats; a DOUBLE -0.0 is 0.0; a FLOAT is the nearest of single precision; a
    TIMESTAMP is its UTC instant; strings are kept exactly. What would be rounded or needs a zone is refused.
    """
    known = {parameter.name for parameter in parameters}
    for name in values:
        if name not in known:
            hint = names.suggestion(name, known) or _list(parameters)
            raise InvalidError(f"unknown parameter {quote_value(name)}{hint}")
    return tuple(_value(parameter, values.get(parameter.name)) for parameter in parameters)


def key(values: Sequence[object]) -> str:
    """The canonical values as JSON text: the same text for the same subscription of a channel, and for no other."""
    return msgspec.json.encode(values).decode()


def from_key(parameters: Sequence[Column], text: str) -> tuple[object, ...]:
    """The canonical values that :func:`key` made ``text`` of; refused when they are not of these parameters."""
    try:
        values = msgspec.json.decode(text, type=list[object])
        named = {parameter.name: value for parameter, value in zip(parameters, values, strict=True)}
    except ValueError as error:
        raise InvalidError(f"{quote_value(text)} do not fit the parameters{_list(parameters)} ({error})") from None
    return canonical(parameters, named)


def _value(parameter: Column, value: object) -> object:
    if value is None:
        raise InvalidError(f"parameter '{parameter.name}': a value is needed (expected {parameter.type.ddl}, not null)")
    try:
        return scalar(parameter.type, value)
    except ValueError as error:
        raise InvalidError(f"parameter '{parameter.name}': {error}") from None


def _list(parameters: Sequence[Column]) -> str:
    if not parameters:
        return "; no parameters are expected"
    return "; expected are " + ", ".join(f"{column.name} {column.type.ddl}" for column in parameters)

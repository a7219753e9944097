"""The types a column may have: Spark SQL's, read from text and given as Arrow types.

A type is written in Spark's words (``DECIMAL(10, 2)``, ``ARRAY<STRUCT<name: STRING, at: TIMESTAMP>>``); synonyms
become the one canonical spelling, so two types that compare equal are the same type.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

import msgspec

from tocsin.errors import InvalidError
from tocsin.model import names


class Kind(StrEnum):
    """What a type is, apart from its arguments."""

    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    ARRAY = "ARRAY"
    STRUCT = "STRUCT"
    MAP = "MAP"


ALLOWED: Final = (
    "STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP, "
    "ARRAY<type>, STRUCT<name: type, ...>, MAP<STRING, type>"
)
INTEGER_BITS: Final = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_SYNONYMS: Final = {
    "TEXT": Kind.STRING,
    "BOOL": Kind.BOOLEAN,
    "BYTE": Kind.TINYINT,
    "SHORT": Kind.SMALLINT,
    "INTEGER": Kind.INT,
    "LONG": Kind.BIGINT,
    "REAL": Kind.FLOAT,
    "DEC": Kind.DECIMAL,
    "NUMERIC": Kind.DECIMAL,
    "TIMESTAMP_LTZ": Kind.TIMESTAMP,
}
_NESTED: Final = frozenset({Kind.ARRAY, Kind.STRUCT, Kind.MAP})
_DEEPEST: Final = 16


class ColumnType(msgspec.Struct, frozen=True, omit_defaults=True):
    """A type. ``element`` is the type of an ARRAY's elements or of a MAP's values; MAP keys are always STRING."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: ColumnType | None = None
    fields: tuple[StructField, ...] = ()

    @property
    def ddl(self) -> str:
        """The type as Spark writes it; :func:`parse_type` reads it back."""
        match self.kind:
            case Kind.DECIMAL:
                return f"DECIMAL({self.precision}, {self.scale})"
            case Kind.ARRAY:
                return f"ARRAY<{self.inner.ddl}>"
            case Kind.MAP:
                return f"MAP<STRING, {self.inner.ddl}>"
            case Kind.STRUCT:
                return f"STRUCT<{', '.join(f'{field.name}: {field.type.ddl}' for field in self.fields)}>"
        return self.kind.value

    @property
    def inner(self) -> ColumnType:
        """The type of an ARRAY's elements or a MAP's values."""
        if self.element is None:
            raise TypeError(f"{self.kind} has no elements")
        return self.element

    @property
    def scalar(self) -> bool:
        """Whether a value is one thing: parameters, primary keys and slicing columns must be."""
        return self.kind not in _NESTED


class StructField(msgspec.Struct, frozen=True):
    """A named field of a STRUCT."""

    name: str
    type: ColumnType


def integer_range(kind: Kind) -> tuple[int, int]:
    """The smallest and largest value of an integer kind."""
    half = 1 << (INTEGER_BITS[kind] - 1)
    return -half, half - 1


def parse_type(text: str) -> ColumnType:
    """The type written as ``text``; refused with the allowed types when it is not one."""
    reader = _TypeReader(text)
    type_ = reader.type()
    reader.expect("")
    return type_


class _TypeReader:
    """Reads one type from its words and punctuation, left to right."""

    _TOKENS = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[0-9]+|\S)")

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._tokens = self._TOKENS.findall(self._text)
        self._next = 0

    def type(self, depth: int = 0) -> ColumnType:
        if depth > _DEEPEST:
            raise InvalidError(f"type nested more than {_DEEPEST} deep")
        kind = self._kind(self._take())
        match kind:
            case Kind.DECIMAL:
                return self._decimal()
            case Kind.ARRAY:
                self.expect("<")
                array = ColumnType(kind, element=self.type(depth + 1))
                self.expect(">")
                return array
            case Kind.MAP:
                return self._map(depth)
            case Kind.STRUCT:
                return self._struct(depth)
        return ColumnType(kind)

    def expect(self, wanted: str) -> None:
        """Takes the next token, which must be ``wanted``; ``""`` stands for the end."""
        found = self._take()
        if found != wanted:
            raise InvalidError(
                f"expected {wanted or 'the end'!r} but found {found or 'the end'!r} in type {self._text[:80]!r}"
            )

    def _take(self) -> str:
        token = self._tokens[self._next] if self._next < len(self._tokens) else ""
        self._next += 1
        return token

    def _accept(self, wanted: str) -> bool:
        if self._next < len(self._tokens) and self._tokens[self._next] == wanted:
            self._next += 1
            return True
        return False

    def _kind(self, word: str) -> Kind:
        upper = word.upper()
        if upper in _SYNONYMS:
            return _SYNONYMS[upper]
        if upper in Kind.__members__:
            return Kind[upper]
        hint = names.suggestion(word, [*Kind.__members__, *_SYNONYMS])
        raise InvalidError(f"unknown type {word[:80]!r}{hint}; allowed are {ALLOWED}")

    def _decimal(self) -> ColumnType:
        precision, scale = 10, 0
        if self._accept("("):
            precision = self._integer()
            if self._accept(","):
                scale = self._integer()
            self.expect(")")
        if not (1 <= precision <= 38 and scale <= precision):
            raise InvalidError(f"DECIMAL({precision}, {scale}): precision is 1 to 38, scale 0 to the precision")
        return ColumnType(Kind.DECIMAL, precision=precision, scale=scale)

    def _integer(self) -> int:
        token = self._take()
        if not token.isdecimal() or len(token) > 9:
            raise InvalidError(f"expected a number but found {token[:80]!r} in type {self._text[:80]!r}")
        return int(token)

    def _map(self, depth: int) -> ColumnType:
        self.expect("<")
        key = self.type(depth + 1)
        if key.kind is not Kind.STRING:
            raise InvalidError(f"MAP keys are STRING (JSON has no other), not {key.ddl}")
        self.expect(",")
        mapping = ColumnType(Kind.MAP, element=self.type(depth + 1))
        self.expect(">")
        return mapping

    def _struct(self, depth: int) -> ColumnType:
        self.expect("<")
        fields = [self._field(depth)]
        while self._accept(","):
            fields.append(self._field(depth))
        self.expect(">")
        if twice := names.find_repeated(field.name for field in fields):
            raise InvalidError(f"field {twice!r} occurs twice in type {self._text[:80]!r}")
        return ColumnType(Kind.STRUCT, fields=tuple(fields))

    def _field(self, depth: int) -> StructField:
        name = self._take()
        if fault := names.fault(name):
            raise InvalidError(f"field {name[:80]!r} {fault}")
        self._accept(":")
        return StructField(name, self.type(depth + 1))

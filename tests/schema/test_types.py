"""Column types: read from text, written canonically, held in Arrow."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import InvalidError
from tocsin.schema.arrow import arrow_type
from tocsin.schema.types import ColumnType, Kind, StructField, parse_type

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True)
DECIMALS = st.integers(1, 38).flatmap(
    lambda precision: st.builds(
        ColumnType, st.just(Kind.DECIMAL), precision=st.just(precision), scale=st.integers(0, precision)
    )
)
PLAIN = [kind for kind in Kind if kind not in (Kind.ARRAY, Kind.STRUCT, Kind.MAP, Kind.DECIMAL)]
SCALARS = st.sampled_from(PLAIN).map(ColumnType) | DECIMALS


def _nested(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    fields = st.lists(st.builds(StructField, NAMES, inner), min_size=1, max_size=4, unique_by=lambda f: f.name.lower())
    return (
        st.builds(ColumnType, st.just(Kind.ARRAY), element=inner)
        | st.builds(ColumnType, st.just(Kind.MAP), element=inner)
        | st.builds(ColumnType, st.just(Kind.STRUCT), fields=fields.map(tuple))
    )


TYPES = st.recursive(SCALARS, _nested, max_leaves=6)


@given(TYPES)
def test_a_type_written_as_ddl_is_read_back_as_the_same_type(type_: ColumnType) -> None:
    assert parse_type(type_.ddl) == type_
    assert hash(parse_type(type_.ddl)) == hash(type_)


@given(TYPES)
def test_a_type_survives_being_stored_as_json(type_: ColumnType) -> None:
    assert msgspec.json.decode(msgspec.json.encode(type_), type=ColumnType) == type_


@given(TYPES)
def test_every_type_has_an_arrow_type(type_: ColumnType) -> None:
    assert isinstance(arrow_type(type_), pa.DataType)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("integer", "INT"),
        ("Long", "BIGINT"),
        ("text", "STRING"),
        ("bool", "BOOLEAN"),
        ("real", "FLOAT"),
        ("numeric(5,2)", "DECIMAL(5, 2)"),
        ("decimal", "DECIMAL(10, 0)"),
        ("decimal(7)", "DECIMAL(7, 0)"),
        (" array < array<int>> ", "ARRAY<ARRAY<INT>>"),
        ("struct<a int, b: map<string,Text>>", "STRUCT<a: INT, b: MAP<STRING, STRING>>"),
    ],
)
def test_synonyms_and_spacing_become_the_canonical_spelling(written: str, canonical: str) -> None:
    assert parse_type(written).ddl == canonical


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("INTT", "did you mean INT"),
        ("VARCHAR(10)", "allowed are STRING"),
        ("", "unknown type ''"),
        ("DECIMAL(39, 2)", "precision is 1 to 38"),
        ("DECIMAL(5, 6)", "precision is 1 to 38"),
        ("DECIMAL(-1)", "expected a number"),
        ("DECIMAL(9999999999999999999999)", "expected a number"),
        ("MAP<INT, INT>", "MAP keys are STRING"),
        ("STRUCT<>", "'>' is not a name"),
        ("STRUCT<a: INT, A: INT>", "occurs twice"),
        ("STRUCT<_a: INT>", "reserved"),
        ("ARRAY<INT", "expected '>'"),
        ("INT INT", "expected 'the end'"),
        ("ARRAY<" * 50 + "INT" + ">" * 50, "nested more than"),
    ],
)
def test_what_is_not_a_type_is_refused_with_the_reason(written: str, reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        parse_type(written)


@given(st.text(max_size=30) | st.text(alphabet="ARYINTSUCMP<>(),: a1", max_size=40))
def test_no_text_makes_parsing_fail_otherwise(text: str) -> None:
    with suppress(InvalidError):
        parse_type(text)


def test_a_timestamp_is_microseconds_in_utc() -> None:
    assert arrow_type(parse_type("TIMESTAMP")) == pa.timestamp("us", tz="UTC")

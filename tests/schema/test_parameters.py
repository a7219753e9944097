"""Subscription parameters: equal subscriptions are one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import InvalidError
from tocsin.schema.arrow import parameter_schema
from tocsin.schema.definitions import Column
from tocsin.schema.parameters import canonical, from_key, key
from tocsin.schema.types import parse_type


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, parse_type(type_)) for name, type_ in types.items())


def one(type_: str, value: object) -> object:
    return canonical(columns(p=type_), {"p": value})[0]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("INT", 5, 5),
        ("INT", 5.0, 5),
        ("DOUBLE", 5, 5.0),
        ("DOUBLE", -0.0, 0.0),
        ("FLOAT", 0.1, 0.10000000149011612),
        ("STRING", "e\u0301", "e\u0301"),
        ("BOOLEAN", True, True),
        ("DECIMAL(10, 2)", 5, Decimal("5.00")),
        ("DECIMAL(10, 2)", "5.010", Decimal("5.01")),
        ("DECIMAL(38, 2)", "123456789012345678.99", Decimal("123456789012345678.99")),
        ("DECIMAL(38, 2)", 123456789012345678, Decimal("123456789012345678.00")),
        ("DECIMAL(10, 2)", 0.1, Decimal("0.10")),
        ("DATE", "2026-01-31", date(2026, 1, 31)),
        ("TIMESTAMP", "2026-01-31T14:00:00+02:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("TIMESTAMP", "2026-01-31T12:00:00.123456000Z", datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)),
        ("BIGINT", 2**63 - 1, 2**63 - 1),
        ("BIGINT", 2.0**53, 2**53),
        ("DOUBLE", 2**60, 2.0**60),
        ("DOUBLE", 1152921504606847000, 2.0**60),
        (
            "TIMESTAMP",
            datetime(2026, 1, 31, 13, tzinfo=timezone(timedelta(hours=1))),
            datetime(2026, 1, 31, 12, tzinfo=UTC),
        ),
    ],
)
def test_a_value_takes_its_types_normal_form(type_: str, value: object, expected: object) -> None:
    found = one(type_, value)
    assert found == expected
    assert type(found) is type(expected)
    assert str(found) == str(expected)


@pytest.mark.parametrize(
    ("type_", "value", "said"),
    [
        ("INT", "5", 'expected INT, got "5"'),
        ("INT", 5.5, "expected INT, got 5.5"),
        ("INT", True, "expected INT, got true"),
        ("INT", 2**31, r"expected INT \(-2147483648 to 2147483647\), got 2147483648"),
        ("INT", 1e400, "expected INT, got Infinity"),
        ("DOUBLE", float("nan"), "expected DOUBLE, got NaN"),
        ("DOUBLE", 10**400, "expected DOUBLE, got 1000"),
        ("FLOAT", 1e39, "expected FLOAT, got 1e.39"),
        ("STRING", 5, "expected STRING, got 5"),
        ("STRING", "\ud800", "expected STRING"),
        ("STRING", ["a"], r"expected STRING, got \[\"a\"\]"),
        ("BOOLEAN", 1, "expected BOOLEAN, got 1"),
        ("DECIMAL(4, 2)", 100, r"expected DECIMAL\(4, 2\) \(at most 2 digits before the point and 2 after\), got 100"),
        ("DECIMAL(4, 2)", "five", "expected DECIMAL"),
        ("DECIMAL(4, 2)", "sNaN", "expected DECIMAL"),
        ("DATE", "2026-01-31T00:00:00Z", "expected DATE"),
        ("TIMESTAMP", "noon", "expected TIMESTAMP .RFC 3339"),
        ("TIMESTAMP", "0001-01-01T00:00:00+01:00", "expected TIMESTAMP"),
        ("STRING", None, "a value is needed .expected STRING, not null"),
        ("ARRAY<INT>", [1], "ARRAY<INT> is not a single value"),
    ],
)
def test_a_value_of_another_type_is_refused_by_the_parameters_name(type_: str, value: object, said: str) -> None:
    with pytest.raises(InvalidError, match=f"parameter 'p': .*{said}"):
        one(type_, value)


@pytest.mark.parametrize(
    ("type_", "value", "said"),
    [
        ("DECIMAL(10, 2)", "1.555", r"at most 8 digits before the point and 2 after\), got \"1.555\""),
        ("DECIMAL(10, 2)", 1.555, r"2 after\), got 1.555"),
        ("DECIMAL(10, 2)", Decimal("0.125"), "2 after"),
        ("DECIMAL(10, 2)", "1e-3", "2 after"),
        ("DECIMAL(20, 2)", 12345678901234567.89, r"more than 15 as text\), got 1.2345678901234568e.16"),
        ("TIMESTAMP", "2026-01-31T12:00:00", "with a zone and at most microseconds, such as"),
        ("TIMESTAMP", datetime(2026, 1, 31, 12), "with a zone"),  # noqa: DTZ001
        ("TIMESTAMP", "2026-01-31T12:00:00.123456789Z", "at most microseconds"),
        ("TIMESTAMP", "2026-01-31T12:00:00.0000001+01:00", "at most microseconds"),
        ("TIMESTAMP", date(2026, 1, 31), "with a zone"),
        ("DATE", datetime(2026, 1, 31, tzinfo=UTC), "expected DATE"),
        ("BIGINT", 9007199254740994.0, "expected BIGINT, got 9007199254740994.0"),
        ("DOUBLE", 2**53 + 1, r"whole numbers up to 9007199254740992, .*\), got 9007199254740993"),
        ("FLOAT", 2**24 + 1, r"whole numbers up to 16777216, .*\), got 16777217"),
    ],
)
def test_a_value_that_would_change_is_refused(type_: str, value: object, said: str) -> None:
    with pytest.raises(InvalidError, match=f"parameter 'p': .*{said}"):
        one(type_, value)


def test_times_that_differ_by_a_microsecond_are_two_subscriptions() -> None:
    parameters = columns(at="TIMESTAMP")
    keys = {key(canonical(parameters, {"at": f"2026-01-31T12:00:00.12345{n}Z"})) for n in (6, 7)}
    assert keys == {'["2026-01-31T12:00:00.123456Z"]', '["2026-01-31T12:00:00.123457Z"]'}


def test_a_number_too_long_to_be_written_is_refused_all_the_same() -> None:
    with pytest.raises(InvalidError, match="expected BIGINT, got a value of type int"):
        one("BIGINT", 10**5000)


def test_a_missing_parameter_is_refused_by_name() -> None:
    with pytest.raises(InvalidError, match=r"parameter 'user': a value is needed \(expected STRING"):
        canonical(columns(event="STRING", user="STRING"), {"event": "fire"})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"event": "fire", "evnt": 1}, 'unknown parameter "evnt" .did you mean event'),
        ({"event": "fire", "zzz": 1}, "expected are event STRING"),
    ],
)
def test_an_unknown_parameter_is_refused_by_name(values: Mapping[str, object], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        canonical(columns(event="STRING"), values)


def test_a_channel_without_parameters_has_one_subscription() -> None:
    assert key(canonical((), {})) == "[]"
    with pytest.raises(InvalidError, match="no parameters are expected"):
        canonical((), {"event": 1})


def test_values_come_in_the_parameters_order() -> None:
    parameters = columns(a="INT", b="STRING")
    assert canonical(parameters, {"b": "x", "a": 1}) == (1, "x")
    assert key((1, "x")) == '[1,"x"]'


PARAMETERS = columns(
    s="STRING", b="BOOLEAN", i="INT", f="FLOAT", d="DOUBLE", n="DECIMAL(12, 3)", day="DATE", at="TIMESTAMP"
)
GIVEN = st.fixed_dictionaries(
    {
        "s": st.text(st.characters(exclude_categories=["Cs"])),
        "b": st.booleans(),
        "i": st.integers(-(2**31), 2**31 - 1),
        "f": st.floats(width=32, allow_nan=False, allow_infinity=False),
        "d": st.floats(allow_nan=False, allow_infinity=False),
        "n": st.decimals(-99999999, 99999999, allow_nan=False, places=3),
        "day": st.dates(),
        "at": st.datetimes(timezones=st.just(UTC)),
    }
)


@given(GIVEN)
def test_the_key_gives_the_values_back(given_: dict[str, Any]) -> None:
    values = canonical(PARAMETERS, given_)
    assert from_key(PARAMETERS, key(values)) == values
    assert canonical(PARAMETERS, {p.name: value for p, value in zip(PARAMETERS, values, strict=True)}) == values


@given(GIVEN, GIVEN)
def test_keys_are_equal_exactly_when_the_values_are(one_: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = canonical(PARAMETERS, one_), canonical(PARAMETERS, other)
    assert (key(first) == key(second)) == (first == second)


@pytest.mark.parametrize("text", ["", "5", "[]", '["x","y"]', "{}"])
def test_a_key_of_other_parameters_is_refused(text: str) -> None:
    with pytest.raises(InvalidError):
        from_key(columns(a="INT"), text)


@given(st.from_type(object) | st.text() | st.floats() | st.integers(), st.sampled_from(PARAMETERS))
def test_no_value_raises_anything_but_a_refusal(value: object, parameter: Column) -> None:
    try:
        canonical([parameter], {parameter.name: value})
    except InvalidError as error:
        str(error).encode()


@given(GIVEN)
def test_canonical_values_fit_the_arrow_schema(given_: dict[str, Any]) -> None:
    values = canonical(PARAMETERS, given_)
    schema = parameter_schema(PARAMETERS)
    table = pa.table([pa.array([value], type=field.type) for value, field in zip(values, schema, strict=True)], schema)
    assert tuple(table.to_pylist()[0].values()) == values

"""Publications: which are accepted, in what form, and what the others are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import InvalidError
from tocsin.schema.definitions import Column, Dataset, DatasetKind
from tocsin.schema.records import Batch, RecordDecoder
from tocsin.schema.types import parse_type

NDJSON = "application/x-ndjson"


def dataset(primary_key: str | None = "id", **columns: str) -> Dataset:
    types = tuple(Column(name, parse_type(text)) for name, text in {"id": "STRING", **columns}.items())
    return Dataset("Reports", DatasetKind.APPEND, types, primary_key)


REPORTS = dataset(etype="STRING", severity="INT", x="DOUBLE", at="TIMESTAMP")
DECODER = RecordDecoder(REPORTS)


def reasons(batch: Batch) -> dict[int, str]:
    return {refused.index: refused.reason for refused in batch.refusals}


def reason(body: object, decoder: RecordDecoder = DECODER) -> str:
    batch = decoder.decode(json.dumps(body).encode())
    assert batch.lines == []
    assert list(reasons(batch)) == [0]
    return reasons(batch)[0]


def accepted(value: object, type_: str) -> Any:
    """What the canonical line holds for a value of a column ``v``."""
    batch = RecordDecoder(dataset(v=type_)).decode(json.dumps({"id": "a", "v": value}).encode())
    assert batch.refusals == []
    return json.loads(batch.lines[0], parse_float=Decimal)["v"]


def test_an_object_an_array_and_lines_give_the_same_records() -> None:
    records = [{"id": "a", "severity": 3}, {"id": "b", "etype": "fire"}]
    lines = "\n".join(map(json.dumps, records)).encode()
    array = DECODER.decode(json.dumps(records, indent=2).encode(), "application/json")
    assert array.lines == [b'{"id":"a","severity":3}', b'{"id":"b","etype":"fire"}']
    assert array.keys == array.slicing == ["a", "b"]
    assert DECODER.decode(lines, NDJSON) == array
    assert DECODER.decode(lines + b"\n", "application/x-ndjson; charset=utf-8") == array
    assert DECODER.decode(lines, "application/json") == array
    assert DECODER.decode(json.dumps(records[0]).encode()).lines == array.lines[:1]


def test_an_object_spread_over_lines_is_one_record() -> None:
    assert DECODER.decode(b'{\n  "id": "a",\n  "severity": 1\n}\n').lines == [b'{"id":"a","severity":1}']


def test_blank_lines_and_a_byte_order_mark_are_passed_over() -> None:
    batch = DECODER.decode(b'\xef\xbb\xbf{"id":"a"}\r\n\r\n{"id":"b"}\r\n', NDJSON)
    assert batch.keys == ["a", "b"]
    assert batch.refusals == []


@pytest.mark.parametrize("separator", [b" ", b""])
def test_two_records_on_one_line_are_refused(separator: bytes) -> None:
    batch = DECODER.decode(b'{"id":"a"}' + separator + b'{"id":"b"}\n{"id":"c"}', NDJSON)
    assert batch.keys == ["c"]
    assert "not JSON" in reasons(batch)[0]


def test_a_broken_line_is_refused_alone() -> None:
    batch = DECODER.decode(b'{"id":"a"}\n{"id":\n[]\n\xff\n{"id":"b"}', NDJSON)
    assert batch.keys == ["a", "b"]
    assert list(reasons(batch)) == [1, 2, 3]
    assert reasons(batch)[1] == "not JSON: Input data was truncated"
    assert reasons(batch)[2] == "expected an object, got []"


@pytest.mark.parametrize("body", [b'[{"id":"a"},', b'{"id":', b'[{"id":"a"}]]', b"", b"  \n", b"\xff", b"{'id': 1}"])
def test_a_broken_array_or_object_is_refused_as_a_whole(body: bytes) -> None:
    with pytest.raises(InvalidError):
        DECODER.decode(body, "application/json")


def test_bad_records_of_an_array_are_refused_and_the_others_accepted() -> None:
    body = [{"id": "a"}, {"id": "b", "severity": "high"}, 5, {"id": "c"}, {"severity": 1}]
    batch = DECODER.decode(json.dumps(body).encode())
    assert batch.keys == ["a", "c"]
    assert reasons(batch) == {
        1: "field 'severity': expected INT, got \"high\"",
        2: "expected an object, got 5",
        4: "field 'id': must be present and not null",
    }


def test_an_empty_array_is_an_empty_batch() -> None:
    assert DECODER.decode(b"[]") == Batch([], [], [], [], indexes=range(0))


def test_an_unknown_field_is_refused_with_the_closest_column() -> None:
    assert reason({"id": "a", "severty": 3}) == "unknown field 'severty' (did you mean severity?)"
    assert reason({"ID": "a"}) == "unknown field 'ID' (did you mean id?)"
    assert "expected are id, etype" in reason({"id": "a", "zzz": 3})


def test_missing_and_null_fields_are_the_same() -> None:
    assert DECODER.decode(b'{"id":"a","severity":null}').lines == DECODER.decode(b'{"id":"a"}').lines


@pytest.mark.parametrize("body", [{"severity": 1}, {"id": None}])
def test_the_primary_key_must_be_there(body: object) -> None:
    assert reason(body) == "field 'id': must be present and not null"


def test_the_slicing_column_must_be_there_and_is_given() -> None:
    decoder = RecordDecoder(REPORTS, "Severity")
    assert reason({"id": "a"}, decoder) == "field 'severity': must be present and not null"
    batch = decoder.decode(b'{"id":"a","severity":7}')
    assert (batch.slicing, batch.keys) == ([7], ["a"])


def test_without_primary_key_nothing_is_needed_but_the_slicing_column() -> None:
    batch = RecordDecoder(dataset(primary_key=None, x="INT"), "x").decode(b'{"x":1}')
    assert (batch.lines, batch.slicing, batch.keys) == ([b'{"x":1}'], [1], [None])


def test_a_slicing_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidError, match="did you mean severity"):
        RecordDecoder(REPORTS, "severityy")


@pytest.mark.parametrize(
    ("type_", "value", "said"),
    [
        ("INT", 2**31, "expected INT (-2147483648 to 2147483647), got 2147483648"),
        ("TINYINT", -129, "expected TINYINT (-128 to 127), got -129"),
        ("BIGINT", 2**63, "expected BIGINT (-9223372036854775808 to 9223372036854775807), got 9223372036854775808"),
        ("INT", 1.5, "expected INT, got 1.5"),
        ("INT", True, "expected INT, got true"),
        ("STRING", 5, "expected STRING, got 5"),
        ("BOOLEAN", "true", 'expected BOOLEAN, got "true"'),
        ("DOUBLE", "NaN", 'expected DOUBLE, got "NaN"'),
        ("FLOAT", 1e39, "expected FLOAT, got 1e+39"),
        ("DECIMAL(4, 2)", 100, "expected DECIMAL(4, 2) (at most 2 digits before the point and 2 after), got 100"),
        (
            "DECIMAL(4, 2)",
            "NaN",
            'expected DECIMAL(4, 2) (at most 2 digits before the point and 2 after), got "NaN"',
        ),
        ("DATE", "31.1.2026", 'expected DATE (text such as "2026-01-31"), got "31.1.2026"'),
        ("ARRAY<INT>", 1, "expected ARRAY<INT>, got 1"),
        ("MAP<STRING, INT>", [], "expected MAP<STRING, INT>, got []"),
        ("STRUCT<a: INT>", "x", 'expected STRUCT<a: INT>, got "x"'),
    ],
)
def test_a_value_of_another_type_is_refused(type_: str, value: object, said: str) -> None:
    assert reason({"id": "a", "v": value}, RecordDecoder(dataset(v=type_))) == f"field 'v': {said}"


@pytest.mark.parametrize("value", ["yesterday", 5, "2026-01-31", "0001-01-01T00:00:00+14:00", "2026-02-30T00:00:00Z"])
def test_what_is_no_time_is_refused(value: object) -> None:
    assert "expected TIMESTAMP (RFC 3339 text with a zone and" in reason({"id": "a", "at": value})


@pytest.mark.parametrize(
    ("type_", "value", "said"),
    [
        ("ARRAY<STRUCT<n: INT>>", [{"n": 1}, None, {"n": "x"}], "field 'v[2].n': expected INT, got \"x\""),
        ("MAP<STRING, INT>", {"k": "x"}, 'field \'v["k"]\': expected INT, got "x"'),
        ("STRUCT<name: INT>", {"nmae": 1}, "unknown field 'v.nmae' (did you mean name?)"),
        ("ARRAY<TIMESTAMP>", ["0001-01-01T00:00:00+01:00"], "field 'v[0]': expected TIMESTAMP"),
    ],
)
def test_a_problem_inside_a_nested_value_is_named_by_its_path(type_: str, value: object, said: str) -> None:
    assert reason({"id": "a", "v": value}, RecordDecoder(dataset(v=type_))).startswith(said)


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("2026-01-31 12:00:00z", "2026-01-31T12:00:00Z"),
        ("2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.123456Z"),
        ("2026-01-31T12:00:00.123456000Z", "2026-01-31T12:00:00.123456Z"),
        ("2026-01-31T14:00:00.25+02:00", "2026-01-31T12:00:00.250000Z"),
    ],
)
def test_timestamps_are_written_in_utc(given: str, canonical: str) -> None:
    assert accepted(given, "TIMESTAMP") == canonical
    assert accepted([None, {"at": given}], "ARRAY<STRUCT<at: TIMESTAMP>>") == [None, {"at": canonical}]
    assert accepted({"k": given}, "MAP<STRING, TIMESTAMP>") == {"k": canonical}


def test_a_timestamp_used_for_slicing_is_given_as_its_instant() -> None:
    batch = RecordDecoder(REPORTS, "at").decode(b'{"id":"a","at":"2026-01-31T14:00:00+02:00"}')
    assert batch.slicing == [datetime(2026, 1, 31, 12, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("given", "canonical"), [(1, "1.00"), ("1.010", "1.01"), (2.5, "2.50"), ("-0", "0.00"), ("25e-1", "2.50")]
)
def test_decimals_have_the_digits_of_their_scale(given: object, canonical: str) -> None:
    assert str(accepted(given, "DECIMAL(10, 2)")) == canonical


def test_a_decimal_keeps_every_digit_that_was_written() -> None:
    batch = RecordDecoder(dataset(v="DECIMAL(38, 10)")).decode(b'{"id":"a","v":12345678901234567890.0123456789}')
    assert batch.lines == [b'{"id":"a","v":12345678901234567890.0123456789}']


@pytest.mark.parametrize(
    ("type_", "text", "said"),
    [
        ("DECIMAL(10, 2)", "0.125", "expected DECIMAL(10, 2) (at most 8 digits before the point and 2 after), got"),
        ("DECIMAL(10, 2)", '"0.125"', "expected DECIMAL(10, 2)"),
        ("DECIMAL(10, 2)", "1.0000000000000000000001", "expected DECIMAL(10, 2)"),
        ("TIMESTAMP", '"2026-01-31T12:00:00"', "expected TIMESTAMP (RFC 3339 text with a zone and at most micro"),
        ("TIMESTAMP", '"2026-01-31T12:00:00.123456789Z"', "expected TIMESTAMP"),
        ("TIMESTAMP", r'"2026-01-31T12:00:00.12345\u0036\u003789Z"', "expected TIMESTAMP"),
        ("TIMESTAMP", r'"2026-01-31T12:00:00\u002E123456789Z"', "expected TIMESTAMP"),
        ("DOUBLE", "9007199254740993", "expected DOUBLE (whole numbers up to 9007199254740992"),
        ("DOUBLE", "-9007199254740993", "expected DOUBLE"),
        ("DOUBLE", "1763267073123456789", "expected DOUBLE"),
        ("FLOAT", "16777217", "expected FLOAT (whole numbers up to 16777216"),
    ],
)
def test_a_value_that_would_change_is_refused_and_the_others_are_not(type_: str, text: str, said: str) -> None:
    decoder = RecordDecoder(dataset(v=type_, w=f"ARRAY<STRUCT<v: {type_}>>"))
    lines = f'{{"id":"a"}}\n{{"id":"b","v":{text}}}\n{{"id":"c","w":[null,{{"v": {text} }}]}}\n{{"id":"d"}}'.encode()
    array = b"[" + lines.replace(b"\n", b",") + b"]"
    for body in (lines, array):
        batch = decoder.decode(body)
        assert batch.keys == ["a", "d"]
        assert reasons(batch)[1].startswith(f"field 'v': {said}")
        assert reasons(batch)[2].startswith(f"field 'w[1].v': {said}")


def test_pythons_local_time_without_a_zone_is_refused() -> None:
    naive = msgspec.json.encode({"id": "a", "at": datetime.now()})  # noqa: DTZ005
    assert "a zone" in reasons(DECODER.decode(naive))[0]
    aware = msgspec.json.encode({"id": "a", "at": datetime.now(UTC)})
    assert DECODER.decode(aware).keys == ["a"]


@pytest.mark.parametrize("text", ["9007199254740992", "1152921504606847000", "1e300", "0.1", "12345678901234567890.5"])
def test_a_double_takes_what_it_holds_and_the_nearest_to_a_fraction(text: str) -> None:
    batch = RecordDecoder(dataset(v="DOUBLE", n="BIGINT")).decode(f'{{"id":"a","v":{text},"n":{2**63 - 1}}}'.encode())
    assert json.loads(batch.lines[0]) == {"id": "a", "v": float(text), "n": 2**63 - 1}


def test_a_double_may_be_written_as_a_whole_number() -> None:
    assert accepted(5, "DOUBLE") == 5


def test_names_that_are_keywords_of_python_are_columns_like_any_other() -> None:
    decoder = RecordDecoder(dataset("class", **{"class": "STRING", "def": "INT", "f0": "INT", "None": "INT"}))
    line = b'{"class":"x","def":1,"f0":2,"None":3}'
    batch = decoder.decode(line)
    assert (batch.lines, batch.keys) == ([line], ["x"])


def test_a_record_over_the_bound_is_refused_alone() -> None:
    decoder = RecordDecoder(REPORTS, max_record_bytes=40)
    body = [{"id": "a"}, {"id": "b" * 50}, {"id": 5}, {"id": "c"}]
    batch = decoder.decode(json.dumps(body).encode())
    assert batch.keys == ["a", "c"]
    assert reasons(batch)[1] == "record of 59 bytes; at most 40 are taken"
    assert list(reasons(batch)) == [1, 2]


def test_of_many_bad_records_the_first_are_listed_and_the_others_counted() -> None:
    bad = [{"id": str(n), "severity": "high"} if n % 3 else {"id": str(n)} for n in range(6000)]
    batch = DECODER.decode(json.dumps(bad).encode())
    assert len(batch.lines) == 2000
    assert [refused.index for refused in batch.refusals] == [n for n in range(1500) if n % 3]
    assert all("severity" in refused.reason for refused in batch.refusals)
    assert batch.unlisted == 3000
    lines = DECODER.decode(b"\n".join(json.dumps(one).encode() for one in bad), NDJSON)
    assert (lines.lines, lines.refusals, lines.unlisted) == (batch.lines, batch.refusals, batch.unlisted)


def test_records_over_the_bound_and_of_others_are_counted_with_the_rest() -> None:
    decoder = RecordDecoder(REPORTS, bound=["etype"], max_record_bytes=100)
    large = [{"id": "x" * 200}] * 700
    others = [{"id": "a", "etype": "bob"}] * 700
    batch = decoder.decode(json.dumps([*large, *others, {"id": "mine"}]).encode(), publisher="ann")
    assert len(batch.lines) == 1
    assert len(batch.refusals) + batch.unlisted == 1400
    assert len(batch.refusals) == 1000


@pytest.mark.parametrize("wrapped", [lambda deep: deep, lambda deep: b'[{"id":"a"},' + deep + b"]"])
def test_deep_nesting_is_refused_and_crashes_nothing(wrapped: Callable[[bytes], bytes]) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"id":', b"}")):
        body = wrapped(opening * 200_000 + closing * 200_000)
        with pytest.raises(InvalidError):
            DECODER.decode(body)
        assert len(DECODER.decode(body, NDJSON).refusals) == 1


def test_a_long_value_is_shortened_in_the_reason() -> None:
    assert len(reason({"id": "a", "severity": "x" * 10_000})) < 120
    assert len(reason({"id": "a", "y" * 10_000: 1})) < 160


SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALAR, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
FIELDS = st.dictionaries(st.sampled_from(["id", "etype", "severity", "x", "at", "Id"]), VALUES | st.datetimes())
RECORDS = st.lists(FIELDS | VALUES, max_size=5)


@given(RECORDS)
def test_every_record_is_either_accepted_or_refused_with_a_reason(records: list[object]) -> None:
    lines = [json.dumps(record, default=str).encode() for record in records]
    array = DECODER.decode(b"[" + b",".join(lines) + b"]")
    assert len(array.lines) + len(array.refusals) == len(records)
    assert all(refused.reason for refused in array.refusals)
    if lines:
        assert DECODER.decode(b"\n".join(lines), NDJSON) == array


@given(RECORDS)
def test_a_canonical_line_is_accepted_and_stays_as_it_is(records: list[object]) -> None:
    first = DECODER.decode(json.dumps(records, default=str).encode())
    if first.lines:
        again = DECODER.decode(b"\n".join(first.lines), NDJSON)
        assert (again.lines, again.keys, again.refusals) == (first.lines, first.keys, [])


@given(
    st.binary(max_size=60) | st.text(alphabet='{}[]",:\\u0d8nulltrue1e\n ', max_size=60).map(str.encode), st.booleans()
)
def test_no_bytes_raise_anything_but_a_refusal(body: bytes, lined: bool) -> None:
    with suppress(InvalidError):
        DECODER.decode(body, NDJSON if lined else "")

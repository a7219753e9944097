"""Records of others are checked as publications are."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tocsin.data.feeds.checking import LETTER_BYTES, MESSAGE_BYTES, MESSAGE_RECORDS, check_lines
from tocsin.data.feeds.source import ARROW
from tocsin.schema.definitions import Column, Dataset, DatasetKind
from tocsin.schema.records import Batch, RecordDecoder
from tocsin.schema.types import parse_type

DATASET = Dataset(
    "Orders", DatasetKind.APPEND, (Column("id", parse_type("STRING")), Column("n", parse_type("INT"))), "id"
)


def checked(*lines: str | None, damage: str | None = None) -> list[tuple[int, str | None, str | None]]:
    """Position, line and damage of each row."""
    rows = [{"slice": 1, "position": number, "line": line, "damage": damage} for number, line in enumerate(lines)]
    batches = check_lines(DATASET, "id")(iter([pa.RecordBatch.from_pylist(rows, schema=ARROW)]))
    return [(row["position"], row["line"], row["damage"]) for batch in batches for row in batch.to_pylist()]


def checked_bytes(line: str) -> int:
    rows = [{"slice": 1, "position": 0, "line": line, "damage": None}]
    return sum(batch.nbytes for batch in check_lines(DATASET, "id")(iter([pa.RecordBatch.from_pylist(rows, ARROW)])))


def test_what_fits_comes_in_its_canonical_form() -> None:
    assert checked('{"n": 1, "id": "a"}', '[{"id": "b"}, {"id": "c", "n": 2}]') == [
        (0, '{"id":"a","n":1}', None),
        (1, '{"id":"b"}', None),
        (1, '{"id":"c","n":2}', None),
    ]


def test_what_does_not_fit_is_kept_with_the_reason() -> None:
    (no_id, wrong, text, number) = checked('{"n": 1}', '{"id": "a", "n": "x"}', "hello", "7")
    assert no_id[1] == '{"n": 1}'
    assert "id" in str(no_id[2])
    assert "n" in str(wrong[2])
    assert text[2]
    assert number[2]


def test_what_could_not_be_read_stays_damage() -> None:
    assert checked(None, damage="has no value") == [(0, None, "has no value")]


def test_an_empty_batch_stays_empty() -> None:
    assert checked() == []


def test_a_list_with_bad_records_is_one_dead_letter_with_the_first_reasons_and_how_many_there_are() -> None:
    line = json.dumps([{"id": "a"}, {"n": 1}, {"id": "b", "n": "x"}, 7, {"id": "c"}, "text", {"id": "d"}])
    *good, (position, kept, reason) = checked(line)
    assert good == [(0, f'{{"id":"{name}"}}', None) for name in "acd"]
    assert (position, kept) == (0, line)
    assert re.fullmatch(
        r"4 of its 7 records are refused: record 2: .*id.*; record 3: .*n.*; record 4: .*; and 1 more", str(reason)
    )


def test_what_is_refused_beyond_those_that_are_listed_is_counted_too() -> None:
    line = json.dumps([*range(5000), {"id": "a"}])
    good, (_, kept, reason) = checked(line)
    assert good == (0, '{"id":"a"}', None)
    assert kept == line
    assert str(reason).startswith("5,000 of its 5,001 records are refused: record 1: ")
    assert str(reason).endswith("; and 4,997 more")


def test_of_a_long_line_the_dead_letter_has_the_beginning() -> None:
    for letter in "aü€😀":
        line = json.dumps([{"n": "x"}, letter * 100_000], ensure_ascii=False)
        [(_, kept, reason)] = checked(line)
        assert kept is not None
        assert line.startswith(kept)
        assert LETTER_BYTES - 4 < len(kept.encode()) <= LETTER_BYTES
        assert f"(the first 65,536 of its {len(line.encode()):,} bytes are kept)" in str(reason)


def test_a_message_with_a_hundred_kilobytes_and_a_thousand_mistakes_does_not_grow() -> None:
    line = "[" + "0," * 1000 + "0" + " " * 100_000 + "]"
    assert checked_bytes(line) < 70_000


def test_a_message_that_is_too_large_is_one_dead_letter_whatever_is_in_it() -> None:
    record = '{"id":"a"}'
    line = f"[{record}{' ' * MESSAGE_BYTES}]"
    [(_, kept, reason)] = checked(line)
    assert str(kept).startswith(f"[{record} ")
    assert str(reason).startswith("has 4,194,316 bytes, and 4,194,304 are taken: send its records in several messages")
    assert checked(line[: MESSAGE_BYTES - 1] + "]") == [(0, record, None)]


@pytest.mark.parametrize("record", ["{}", "0", '{"id":"a","n":1}'])
def test_a_message_with_too_many_records_is_one_dead_letter(record: str) -> None:
    line = f"[{','.join([record] * (MESSAGE_RECORDS + 1))}]"
    [(_, _, reason)] = checked(line)
    assert str(reason).startswith("has 10,001 records, and 10,000 are taken")


def test_lines_of_records_are_counted_too() -> None:
    [(_, _, reason)] = checked("\n".join(['{"id":"a"}'] * (MESSAGE_RECORDS + 1)))
    assert "has 10,001 records" in str(reason)


def test_what_only_looks_like_many_records_is_taken() -> None:
    name = "," * (2 * MESSAGE_RECORDS)
    assert checked(json.dumps([{"id": name}])) == [(0, json.dumps({"id": name}, separators=(",", ":")), None)]


def test_an_error_that_nobody_has_foreseen_is_a_dead_letter_of_that_message(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = RecordDecoder.decode

    def broken(decoder: RecordDecoder, body: bytes, content_type: str) -> Batch:
        if b"bad" in body:
            raise RecursionError("deeper than deep")
        return decode(decoder, body, content_type)

    monkeypatch.setattr(RecordDecoder, "decode", broken)
    first, bad, last = checked('{"id": "a"}', '{"id": "bad"}', '{"id": "b"}')
    assert (first[2], last[2]) == (None, None)
    assert bad == (1, '{"id": "bad"}', "cannot be checked (RecursionError: deeper than deep)")


def test_what_is_given_on_comes_in_pieces_of_a_bounded_size() -> None:
    lines = [json.dumps([{"id": f"{n}{'x' * 900}"} for n in range(4000)]) for _ in range(4)]
    rows = [{"slice": 1, "position": n, "line": line, "damage": None} for n, line in enumerate(lines)]
    pieces = list(check_lines(DATASET, "id")(iter([pa.RecordBatch.from_pylist(rows, schema=ARROW)])))
    assert sum(piece.num_rows for piece in pieces) == 16_000
    assert max(piece.nbytes for piece in pieces) < 5 << 20
    assert max(piece.num_rows for piece in pieces) <= 1000


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.one_of(st.just({"id": "a"}), st.just({"n": 1}), st.integers(), st.just({"id": "b", "n": 2})), max_size=30
    )
)
def test_every_record_of_a_message_is_either_given_on_or_counted_as_refused(records: list[object]) -> None:
    found = checked(json.dumps(records))
    good = [record for record in records if isinstance(record, dict) and "id" in record]
    assert [json.loads(str(line)) for _, line, reason in found if reason is None] == good
    letters = [str(reason) for _, _, reason in found if reason is not None]
    refused = len(records) - len(good)
    assert len(letters) == (1 if refused else 0)
    if refused and len(records) > 1:
        assert letters[0].startswith(f"{refused} of its {len(records)} records are refused: ")

"""Records of others are checked as publications are."""

from __future__ import annotations

import pyarrow as pa

from tocsin.data.feeds.checking import check_lines
from tocsin.data.feeds.source import ARROW
from tocsin.schema.definitions import Column, Dataset, DatasetKind
from tocsin.schema.types import parse_type

DATASET = Dataset(
    "Orders", DatasetKind.APPEND, (Column("id", parse_type("STRING")), Column("n", parse_type("INT"))), "id"
)


def checked(*lines: str | None, damage: str | None = None) -> list[tuple[int, str | None, str | None]]:
    """Position, line and damage of each row."""
    rows = [{"slice": 1, "position": number, "line": line, "damage": damage} for number, line in enumerate(lines)]
    batches = check_lines(DATASET, "id")(iter([pa.RecordBatch.from_pylist(rows, schema=ARROW)]))
    return [(row["position"], row["line"], row["damage"]) for batch in batches for row in batch.to_pylist()]


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

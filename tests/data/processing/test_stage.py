"""What a worker makes of the rows of its task: each record is given to the function, is dead, or was there before."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.data.processing import functions
from tocsin.data.feeds.parsing import CORRUPT, DAMAGE, POSITION, RAW, ROW, SLICE
from tocsin.data.processing import stage
from tocsin.data.processing.contract import FunctionFaultError, check_given
from tocsin.data.processing.stage import FunctionUnavailableError, Letter, Processing
from tocsin.errors import InvalidError

COLUMNS = pa.schema([("id", pa.string()), ("value", pa.int64())])
PARSED = pa.schema(
    [
        (SLICE, pa.int32()),
        (POSITION, pa.int64()),
        (DAMAGE, pa.string()),
        (RAW, pa.string()),
        (ROW, pa.struct([("id", pa.string()), ("value", pa.int64()), (CORRUPT, pa.string())])),
    ]
)
SLICES = 3
PROCESSING = Processing("functions:f", COLUMNS, "id", 10.0, 1 << 30)


class Inside:
    """A function of ``functions.py`` as if it ran elsewhere."""

    def __init__(self, name: str) -> None:
        self._function = getattr(functions, name)
        self.calls: list[list[dict[str, Any]]] = []

    def __call__(self, function: str, memory: int) -> Inside:
        return self

    def run(self, batch: pa.RecordBatch, key: str | None, seconds: float) -> pa.RecordBatch:
        self.calls.append(batch.to_pylist())
        try:
            return check_given(self._function(batch), batch, key)
        except ValueError as error:
            raise FunctionFaultError(str(error)) from None


def record(slice_: int, position: int, number: int, value: int) -> dict[str, Any]:
    row = {"id": f"r{number}", "value": value, CORRUPT: None}
    return {SLICE: slice_, POSITION: position, DAMAGE: None, RAW: json.dumps(row), ROW: row}


def task(chance: Random) -> list[dict[str, Any]]:
    """Rows as they come from a log: in the order of each slice, several at one position, some of them unreadable."""
    rows, positions = list[dict[str, Any]](), [0] * SLICES
    for number in range(chance.randrange(1, 60)):
        slice_ = chance.randrange(SLICES)
        positions[slice_] += chance.choice((0, 10)) if positions[slice_] else 10
        row = record(slice_, positions[slice_], number, chance.randrange(10, 20))
        if chance.random() < 0.1:
            row = {**row, DAMAGE: "lost", RAW: None, ROW: None}
        elif chance.random() < 0.1:
            row = {**row, ROW: {"id": None, "value": None, CORRUPT: row[RAW]}}
        rows.append(row)
    return rows


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=PARSED)


def process(rows: list[dict[str, Any]], floor: list[int], buried: Counter[Letter], cuts: int) -> list[dict[str, Any]]:
    batches = (batch_of(rows[n : n + cuts]) for n in range(0, len(rows), cuts))
    found = list(PROCESSING.process(floor, buried)(batches))
    assert all(batch.schema == PARSED for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def is_good(row: dict[str, Any]) -> bool:
    return row[DAMAGE] is None and row[ROW] is not None and row[ROW][CORRUPT] is None


@pytest.mark.parametrize("seed", range(200))
def test_random_rows_become_what_an_oracle_says(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = Random(seed)
    inside = Inside("raises")
    monkeypatch.setattr(stage, "function_process", inside)
    monkeypatch.setattr(stage, "CUT", chance.choice((1, 7, 1000)))
    rows = task(chance)
    floor = [chance.randrange(0, 100) for _ in range(SLICES)]
    new = [row for row in rows if row[POSITION] > floor[row[SLICE]]]
    dead = [row for row in new if is_good(row) and chance.random() < 0.2]
    buried = Counter((row[SLICE], row[POSITION], row[RAW]) for row in dead)
    found = process(rows, floor, buried, chance.choice((1, 5, 100)))

    alive = [row for row in new if is_good(row) and row not in dead]
    stored = [row[ROW] for row in found if is_good(row)]
    assert stored == [row[ROW] for row in alive if row[ROW]["value"] != functions.BAD]
    letters = [row[RAW] for row in found if row[DAMAGE] == "functions:f: thirteen"]
    assert letters == [row[RAW] for row in alive if row[ROW]["value"] == functions.BAD]
    unreadable = [row for row in new if not is_good(row)]
    assert [row for row in found if row in unreadable] == unreadable
    assert reached(found) == reached(new)
    given = [each["id"] for call in inside.calls for each in call]
    assert set(given) == {row[ROW]["id"] for row in alive}


def reached(rows: list[dict[str, Any]]) -> dict[int, int]:
    return {index: max(row[POSITION] for row in rows if row[SLICE] == index) for index in {row[SLICE] for row in rows}}


def test_what_it_gave_bears_a_position_that_the_batch_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "function_process", Inside("even"))
    found = process([record(0, 10, 1, 10), record(1, 50, 2, 11), record(1, 90, 3, 20)], [0, 0, 0], Counter(), 100)
    given = [row for row in found if row[ROW] is not None]
    assert [row[ROW]["value"] for row in given] == [10, 20, -10, -20]
    assert {(row[SLICE], row[POSITION]) for row in given} == {(1, 90)}
    assert reached(found) == {0: 10, 1: 90}


@pytest.mark.parametrize("key", ["id", None])
def test_a_function_that_is_to_keep_keys_fails_on_whatever_it_makes_another_of(
    monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.setattr(stage, "function_process", Inside("even"))
    keeping = Processing("functions:f", COLUMNS, key, 10.0, 1 << 30, keeps_keys=True)
    rows = [record(0, 10, 1, 4), record(0, 20, 2, 10), record(1, 10, 3, 12)]
    found = [row for batch in keeping.process([0, 0, 0], {})(iter([batch_of(rows)])) for row in batch.to_pylist()]
    assert reached(found) == {0: 20, 1: 10}
    stored, letters = [row[ROW]["id"] for row in found if row[ROW]], [row for row in found if row[DAMAGE]]
    if key is None:
        assert (stored, letters) == (["r1", "r2", "r3", "r2+"], [])
    else:
        assert stored == ["r1", "r3"]
        assert [row[RAW] for row in letters] == [rows[1][RAW]]
        assert "it gave id = 'r2+'" in letters[0][DAMAGE]


def test_of_two_equal_lines_at_one_position_each_dead_one_counts_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "function_process", Inside("unchanged"))
    rows = [record(0, 10, 1, 1), record(0, 10, 1, 1)]
    found = process(rows, [0, 0, 0], Counter({(0, 10, rows[0][RAW]): 1}), 100)
    assert [row[ROW]["id"] for row in found if row[ROW]] == ["r1"]


def test_records_below_what_the_dataset_has_are_given_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Inside("unchanged")
    monkeypatch.setattr(stage, "function_process", inside)
    assert process([record(0, 10, 1, 1)], [10, 0, 0], Counter(), 100) == []
    assert inside.calls == []


def test_a_function_that_cannot_be_started_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Inside("unchanged")
    monkeypatch.setattr(inside, "run", _gone)
    monkeypatch.setattr(stage, "function_process", inside)
    with pytest.raises(FunctionUnavailableError, match="cannot be imported"):
        process([record(0, 10, 1, 1)], [0, 0, 0], Counter(), 100)


def _gone(*arguments: Any) -> Any:
    raise InvalidError("the function f cannot be imported")

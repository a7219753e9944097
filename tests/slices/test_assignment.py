"""A value always goes to the same slice, whoever asks, however it is written."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import InvalidError
from tocsin.slices.assignment import (
    ASSIGNMENTS,
    RandomAssignment,
    assignment,
    canonical_text,
    choose_slice,
    require_of_key,
    slice_by_hash,
    slice_without_function,
)

SEVEN = 7


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()), st.integers(1, 64))
def test_every_value_has_a_slice(value: object, slices: int) -> None:
    assert 0 <= slice_by_hash(value, slices) < slices


def test_the_slices_of_known_values_never_change() -> None:
    # A log outlives its processes: these figures are part of the format.
    assert [slice_by_hash(value, 16) for value in ("r1", "r2", "", 7, 2.5, True)] == [3, 8, 4, 7, 7, 5]


def test_a_missing_value_goes_to_slice_0() -> None:
    assert slice_by_hash(None, 16) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, -0.0),
        (1, Decimal("1.00")),
        (2.5, Decimal("2.50")),
        (10**20, 1e20),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_equal_values_have_one_text(one: object, other: object) -> None:
    assert canonical_text(one) == canonical_text(other)


def test_dates_truths_and_odd_numbers_have_texts() -> None:
    values = [date(2024, 2, 29), True, float("nan"), float("-inf"), 1.5]
    assert list(map(canonical_text, values)) == ["2024-02-29", "true", "nan", "-inf", "1.5"]


def test_a_value_without_a_text_is_refused_by_its_type() -> None:
    with pytest.raises(InvalidError, match="type list"):
        slice_by_hash([1], 16)


def test_values_are_spread_evenly() -> None:
    counts = Counter(slice_by_hash(f"r{number}", 16) for number in range(16_000))
    assert len(counts) == 16
    assert all(800 < count < 1200 for count in counts.values())


def test_the_sensors_of_figure_13_go_to_their_slices() -> None:
    assign = assignment("modulo")
    assert [assign(sensor, 10) for sensor in (21, 1, 52, 19)] == [1, 1, 2, 9]


def test_figure_11_two_nodes_have_the_slices_0_to_5_and_6_to_9() -> None:
    assign, owners = assignment("modulo"), {**dict.fromkeys(range(6), "first"), **dict.fromkeys(range(6, 10), "second")}
    smartphone, aircraft, desktop = 31, 13, 8
    assert [assign(each, 10) for each in (smartphone, aircraft, desktop)] == [1, 3, 8]
    assert [owners[assign(each, 10)] for each in (smartphone, aircraft, desktop)] == ["first", "first", "second"]
    shares = Counter(owners[slice_by_hash(f"item {number}", 10)] for number in range(10_000))
    assert shares["first"] == pytest.approx(6000, abs=200)


@given(st.one_of(st.integers(), st.none()), st.integers(1, 64))
def test_modulo_gives_a_slice_for_every_whole_number(value: int | None, slices: int) -> None:
    assert 0 <= assignment("modulo")(value, slices) < slices


@pytest.mark.parametrize("value", ["21", 2.5, float("nan"), float("inf"), True, [1]])
def test_modulo_refuses_what_is_no_whole_number(value: object) -> None:
    with pytest.raises(InvalidError, match="whole number"):
        assignment("modulo")(value, 10)


def test_what_is_in_one_cell_of_the_grid_is_in_one_slice() -> None:
    assign = assignment("grid:500")
    assert assign((1, 2), 64) == assign((499.9, 0), 64) == slice_by_hash("0 0", 64)
    assert len({assign((500 * x, 500 * y), 64) for x in range(-8, 8) for y in range(-8, 8)}) > 50
    assert assign((None, 3), 64) == assign(None, 64) == assign((float("nan"), 1), 64) == 0


def test_random_slices_are_even_and_follow_from_the_seed() -> None:
    first, second = RandomAssignment(3), RandomAssignment(3)
    slices = [first("x", 10) for _ in range(5000)]
    assert slices == [second("x", 10) for _ in range(5000)]
    assert all(400 < count < 600 for count in Counter(slices).values())


def northern(value: tuple[float, float], slices: int) -> int:
    """The chapter's example: slice 0 for latitudes above zero, else 1. Of nowhere it makes nonsense."""
    latitude, _ = value
    return {60.0: 0, -30.0: 1}.get(latitude, slices)


def test_a_function_of_ones_own_chooses() -> None:
    assert [choose_slice(northern, value, 10) for value in ((60.0, 25.0), (-30.0, 25.0))] == [0, 1]


@pytest.mark.parametrize("value", [None, (1.0, 1.0)])
def test_where_a_function_fails_or_gives_no_slice_the_hash_does(value: object) -> None:
    assert choose_slice(northern, value, 10) is None
    assert slice_without_function(value, 10) == slice_by_hash(repr(value), 10)


def test_assignments_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert assignment() == assignment("hash")
    assert assignment()("r1", 16) == slice_by_hash("r1", 16)
    monkeypatch.setitem(ASSIGNMENTS, "seeded", lambda: RandomAssignment(SEVEN))
    assert assignment("seeded") == RandomAssignment(SEVEN)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rnage", "no slice assignment 'rnage': choose one of grid, hash"),
        ("hash:3", "takes nothing after a colon"),
        ("grid:wide", "'wide'"),
        ("grid:0", "more than 0"),
        ("tests.slices.test_assignment:northern", "no slice assignment"),
    ],
)
def test_an_assignment_that_is_none_is_refused_with_what_to_write(text: str, sentence: str) -> None:
    with pytest.raises(InvalidError, match=sentence):
        assignment(text)


@pytest.mark.parametrize(("text", "columns"), [("random", ["id"]), ("hash", ["place"]), ("grid:5", ["x", "y"])])
def test_slices_that_do_not_follow_from_the_primary_key_cannot_be_shared(text: str, columns: list[str]) -> None:
    with pytest.raises(InvalidError, match="slice by id"):
        require_of_key(text, columns, "id")
    require_of_key(text, columns, None)
    require_of_key("hash", ["id"], "id")
    require_of_key("flights.slicing:northern", ["id"], "id")

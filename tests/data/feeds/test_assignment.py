"""A value always goes to the same slice, whoever asks, however it is written."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.feeds.assignment import ASSIGNMENTS, assignment, canonical_text, hashed
from tocsin.errors import InvalidError


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()), st.integers(1, 64))
def test_every_value_has_a_slice(value: object, slices: int) -> None:
    assert 0 <= hashed(value, slices) < slices


def test_the_slices_of_known_values_never_change() -> None:
    # A log outlives its processes: these figures are part of the format.
    assert [hashed(value, 16) for value in ("r1", "r2", "", 7, 2.5, True)] == [3, 8, 4, 7, 7, 5]


def test_a_missing_value_goes_to_slice_0() -> None:
    assert hashed(None, 16) == 0


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
        hashed([1], 16)


def test_values_are_spread_evenly() -> None:
    counts = Counter(hashed(f"r{number}", 16) for number in range(16_000))
    assert len(counts) == 16
    assert all(800 < count < 1200 for count in counts.values())


def test_assignments_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert assignment() is assignment("hash") is hashed
    monkeypatch.setitem(ASSIGNMENTS, "first", lambda value, slices: 0)
    assert assignment("first")("anything", 16) == 0


def test_an_unknown_assignment_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidError, match="no slice assignment 'rnage': choose one of hash"):
        assignment("rnage")

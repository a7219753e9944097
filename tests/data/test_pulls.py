"""Pulls that are bounded in bytes: each goes on where the one before ended."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data import pulls


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=300),
    st.integers(1, 3000),
    st.integers(1, 5),
)
def test_pulls_one_after_another_bring_everything_once_and_in_order(found: list[int], most: int, span: int) -> None:
    rows = [(number, be, 50) for number, count in enumerate(found, 1) for be in range(count)]

    def read(first: int, last: int, columns: list[str], wanted: pulls.Ints | None) -> pa.Table:
        some = [row for row in rows if first <= row[0] <= last]
        some = some if wanted is None else [row for row in some if row[1] in wanted]
        values = {"execution": 0, "be": 1, "bytes": 2}
        table = {name: pa.array([row[values[name]] for row in some], pa.int64()) for name in values}
        table |= {"rows": pa.array([1] * len(some), pa.int32()), "payload": pa.array(["[]"] * len(some), pa.string())}
        return pa.table(table).select(columns)

    had, first, last = [], 1, len(found) + 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulls, "_SPAN", span)
        while first <= last:
            parts = list(pulls.pull(read, first, last, len(found), None, most, 1, {}))
            had += [(result.execution, result.be) for part in parts for result in part.results]
            assert (parts[-1].upto or 0) >= first
            first = (parts[-1].upto or 0) + 1
    assert had == [row[:2] for row in rows]


def test_a_long_span_is_not_looked_at_as_a_whole_when_its_beginning_is_enough() -> None:
    looked: list[tuple[int, int]] = []

    def read(first: int, last: int, columns: list[str], wanted: pulls.Ints | None) -> pa.Table:
        looked.append((first, last))
        numbers = pa.array(range(first, last + 1), pa.int64())
        table = {
            "execution": numbers,
            "be": numbers,
            "bytes": numbers,
            "rows": numbers,
            "payload": ["[]"] * len(numbers),
        }
        return pa.table(table).select(columns)

    parts = list(pulls.pull(read, 1, 10**6, 10**6, None, 1000, 1, {}))
    assert looked[0] == (1, 64)
    assert max(last for _, last in looked) == 64
    assert (parts[-1].upto or 0) < 64

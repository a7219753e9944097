"""Rows in one pool: they hold what was put into them, and the pool stays about as large as what they hold."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.balance.live.rows import RowPool
from tocsin.balance.model.workload import Int32s


def values(*numbers: int) -> Int32s:
    return np.array(numbers, np.int32)


@pytest.mark.parametrize("seed", range(4))
def test_rows_hold_what_was_put_into_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, plain = RowPool(np.array([0, 2, 2]), values(7, 9)), {0: {7, 9}, 1: set[int]()}
    rows.extend_to(30)
    plain |= {row: set() for row in range(2, 30)}
    for _ in range(1_500):
        row = int(rng.integers(0, 30))
        fresh = sorted(set(rng.integers(0, 500, 12).tolist()) - plain[row])
        match rng.integers(0, 4):
            case 0 | 1:
                rows.append(np.full(len(fresh), row), values(*fresh))
                plain[row] |= set(fresh)
            case 2:
                gone = sorted(plain[row])[::2]
                rows.remove(np.full(len(gone), row), values(*gone))
                plain[row] -= set(gone)
            case _:
                rows.clear(row)
                plain[row] = set()
        assert sorted(rows[row].tolist()) == sorted(plain[row])
        assert rows.waste <= max(1024, rows.top // 2)
    assert all(sorted(rows[row].tolist()) == sorted(held) for row, held in plain.items())


def test_many_rows_grow_at_once() -> None:
    rows = RowPool(np.zeros(4, np.int64), np.empty(0, np.int32))
    rows.append(np.array([2, 0, 2, 2]), values(5, 6, 7, 8))
    assert [rows[row].tolist() for row in range(3)] == [[6], [], [5, 7, 8]]
    assert rows.holding(np.array([2, 0, 1]), values(7, 7, 7)).tolist() == [True, False, False]


def test_the_pool_does_not_grow_with_what_has_come_and_gone() -> None:
    rows = RowPool(np.zeros(101, np.int64), np.empty(0, np.int32))
    for turn in range(200):
        for row in range(0, 100, 10):
            rows.append(np.repeat(np.arange(row, row + 10), 20), np.tile(np.arange(20, dtype=np.int32), 10))
        for row in range(100):
            rows.clear(row)
        assert len(rows.pool) < 20_000, turn


def test_values_get_other_names_as_they_are_gathered() -> None:
    rows = RowPool(np.array([0, 2, 3, 5]), values(1, 2, 2, 0, 1))
    indptr, gathered = rows.gather(np.array([0, 2]), values(10, 11, 12))
    assert indptr.tolist() == [0, 2, 4]
    assert gathered.tolist() == [11, 12, 10, 11]

"""Towers of bits against plain sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.balance.planners.ranks import build_towers, come, following, leave, level_starts, lowest_bit, rank_by_load


@pytest.mark.parametrize("number", [1, 2, 63, 64, 65, 4096, 4097, 300_000])
def test_a_tower_finds_what_a_sorted_set_would(number: int) -> None:
    rng = np.random.default_rng(number)
    starts = level_starts(number)
    tower, members = np.zeros(int(starts[-1]), np.uint64), set[int]()
    for rank in rng.integers(0, number, 400).tolist():
        if rng.random() < 0.6:
            come(tower, starts, rank)
            members.add(rank)
        else:
            leave(tower, starts, rank)
            members.discard(rank)
        asked = int(rng.integers(0, number + 1))
        assert following(tower, starts, asked) == min((r for r in members if r >= asked), default=-1)


def test_a_tower_that_everybody_left_is_all_zero() -> None:
    starts = level_starts(5000)
    tower = np.zeros(int(starts[-1]), np.uint64)
    for rank in (0, 63, 64, 4999):
        come(tower, starts, rank)
    for rank in (64, 0, 4999, 63):
        leave(tower, starts, rank)
    assert not tower.any()


def test_only_those_who_may_move_are_in_the_towers() -> None:
    order, now = np.array([2, 0, 1, 3]), np.array([0, 1, 0, -1], np.int32)
    towers = build_towers(level_starts(4), order, now, np.array([True, True, False, True]), 2)
    assert towers[:, 0].tolist() == [0b0010, 0b0100]


@pytest.mark.parametrize("position", [0, 1, 31, 32, 62, 63])
def test_the_lowest_bit_is_found_whatever_is_above_it(position: int) -> None:
    assert lowest_bit(np.uint64(1 << position)) == position
    assert lowest_bit(np.uint64((2**64 - 1) ^ ((1 << position) - 1))) == position


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**61)), max_size=30))
def test_subscribers_are_ranked_by_own_load_and_then_by_number(own: list[int]) -> None:
    order = rank_by_load(np.array(own, np.int64))
    assert order.tolist() == sorted(range(len(own)), key=lambda i: (-own[i], i))

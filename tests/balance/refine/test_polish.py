"""Cooling the hottest broker."""

from __future__ import annotations

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance.enumeration import ruled
from tests.balance.examples import example
from tests.examples import examples
from tocsin.balance.refine.refinement import Refinement


@hypothesis_settings(max_examples=examples(60))
@given(seed=st.integers(0, 10_000))
def test_the_sorted_loads_never_rise(seed: int) -> None:
    work = Refinement(ruled(seed))
    work.evict(len(work.freedom.home))
    before = sorted(work.state.load * work.state.weight, reverse=True)
    work.cool(5, work.level, seed)
    assert sorted(work.state.load * work.state.weight, reverse=True) <= before


def test_two_who_swap_can_even_out_what_no_single_move_can() -> None:
    work = Refinement(example([[0], [1], [2], [3]], [7, 6, 5, 2], 2, [0, 0, 1, 1]))
    work.cool(10, 20.0, 1)
    assert sorted(work.state.load) == [18.0, 22.0]


def test_it_ends_at_the_goal() -> None:
    work = Refinement(example([[k] for k in range(6)], [10] * 6, 2, [0] * 6))
    assert work.cool(10, 80.0, 1) == 2
    assert work.highest == 80.0

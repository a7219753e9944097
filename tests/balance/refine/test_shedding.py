"""Shedding, bringing back, evicting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance.enumeration import tiny
from tests.balance.examples import example, mask
from tests.examples import examples
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.refine.budget import shed_within
from tocsin.balance.refine.refinement import Refinement


def test_the_heaviest_leave_first() -> None:
    work = Refinement(example([[0], [0, 1], [0, 1, 2], [0]], [10, 10, 10], 2, [0] * 4))
    work.shed(75.0, 75.0, 4)
    assert work.state.assignment.tolist() == [0, 0, 1, 0]


def test_they_go_where_least_is_fetched_for_them() -> None:
    work = Refinement(example([[0, 1], [0], [0], [1, 3], [2]], [10, 10, 10, 1], 3, [0, 0, 0, 2, 1]))
    work.shed(52.0, 52.0, 5)
    assert work.state.assignment.tolist() == [2, 0, 0, 2, 1]


@hypothesis_settings(max_examples=examples(60))
@given(seed=st.integers(0, 10_000), budget=st.integers(0, 6))
def test_shedding_raises_nothing_above_the_limit_and_keeps_to_the_budget(seed: int, budget: int) -> None:
    work = Refinement(Problem(*tiny(seed, capacities=True)))
    before = work.state.load * work.state.weight
    limit = float(before.mean())
    work.shed(limit, limit, budget)
    after = work.state.load * work.state.weight
    assert (after <= np.maximum(before, limit)).all()
    assert len(work.away) <= budget


def test_who_need_not_have_moved_comes_back() -> None:
    work = Refinement(example([[0], [0], [0, 1]], [10, 10], 2, [0, 0, 0]))
    work.restart(np.array([1, 1, 1], np.int32))
    assert work.bring_back(30.0) == 2
    assert work.state.assignment.tolist() == [0, 0, 1]


def test_who_was_evicted_does_not_come_back() -> None:
    work = Refinement(example([[0], [0]], [10], 2, [0, 0], rules=MoveRules(draining=mask(1, 0))))
    assert work.evict(2) == 2
    assert work.bring_back(1000.0) == 0


def test_a_budget_is_spent_on_the_lowest_load_it_can_buy() -> None:
    work = Refinement(example([[k] for k in range(8)], [10] * 8, 4, [0] * 8))
    shed_within(work, 0.0, 3)
    assert len(work.away) == 3
    assert work.highest == 100.0


def test_an_eviction_takes_no_more_than_its_budget() -> None:
    work = Refinement(example([[0], [0, 1], [1]], [10, 10], 2, [0, 0, 0], rules=MoveRules(draining=mask(1, 0))))
    assert work.evict(1) == 1
    assert work.state.assignment.tolist() == [0, 1, 0]
    assert work.waiting.tolist() == [0, 2]

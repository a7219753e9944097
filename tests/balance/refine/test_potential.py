"""Best responses."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance.enumeration import ruled, tiny
from tests.balance.examples import example, mask
from tests.examples import examples
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.refine.potential import Pressure
from tocsin.balance.refine.refinement import Refinement
from tocsin.balance.refine.state import refinement_state

INDIFFERENT = Pressure(0.0, 0.0, 0.0)


def _incoming(work: Refinement) -> float:
    return float(work.state.load.sum() - work.rows.own.sum())


@hypothesis_settings(max_examples=examples(60))
@given(seed=st.integers(0, 10_000), sharpness=st.floats(0.05, 1.0))
def test_loads_and_counts_stay_exact(seed: int, sharpness: float) -> None:
    work = Refinement(Problem(*tiny(seed, capacities=True)))
    work.respond([sharpness, 1.0], Pressure(0.5, 0.0, 2.0))
    again = refinement_state(work.problem.workload, work.state.assignment)
    assert (work.state.held == again.held).all()
    assert (work.state.load == again.load).all()


@hypothesis_settings(max_examples=examples(60))
@given(seed=st.integers(0, 10_000))
def test_sharp_responses_never_add_to_what_is_fetched(seed: int) -> None:
    work = Refinement(Problem(*tiny(seed)))
    before = _incoming(work)
    work.respond([1.0, 1.0], INDIFFERENT)
    assert _incoming(work) <= before


def test_a_group_goes_where_its_subscriptions_are_held_though_nobody_alone_would_gain() -> None:
    rows = [[0, 1]] * 2 + [[0, 1]] * 3
    sharp = Refinement(example(rows, [10, 10], 2, [0, 0, 1, 1, 1]))
    sharp.respond([1.0, 1.0], INDIFFERENT)
    smooth = Refinement(example(rows, [10, 10], 2, [0, 0, 1, 1, 1]))
    smooth.respond([0.5, 1.0], INDIFFERENT)
    assert sharp.state.assignment.tolist() == [0, 0, 1, 1, 1]
    assert smooth.state.assignment.tolist() == [1, 1, 1, 1, 1]


def test_nobody_leaves_home_for_less_than_the_price() -> None:
    problem = example([[0, 1], [0, 1], [0, 1]], [10, 10], 2, [0, 0, 1], rules=MoveRules(fixed=mask(1, 1, 0)))
    dear, cheap = Refinement(problem), Refinement(problem)
    dear.respond([1.0], Pressure(0.0, 0.0, 25.0))
    cheap.respond([1.0], Pressure(0.0, 0.0, 5.0))
    assert dear.state.assignment.tolist() == [0, 0, 1]
    assert cheap.state.assignment.tolist() == [0, 0, 0]


def test_load_drives_people_apart() -> None:
    work = Refinement(example([[0]] * 8, [10], 2, [0] * 8))
    work.respond([1.0], Pressure(1.0, 0.0, 0.0))
    assert np.bincount(work.state.assignment).tolist() == [4, 4]


def test_loads_below_the_floor_do_not() -> None:
    work = Refinement(example([[0]] * 8, [10], 2, [0] * 8))
    work.respond([1.0], Pressure(1.0, 1000.0, 0.0))
    assert work.state.assignment.tolist() == [0] * 8


@hypothesis_settings(max_examples=examples(80))
@given(seed=st.integers(0, 10_000))
def test_the_rules_are_kept(seed: int) -> None:
    problem = ruled(seed)
    work = Refinement(problem)
    work.evict(problem.workload.subscribers)
    work.respond([0.4, 1.0], Pressure(0.5, 0.0, 0.0))
    brokers = problem.workload.brokers
    came = work.state.assignment != problem.assignment
    drained = problem.rules.must_empty(brokers)
    allowed = np.where(
        drained[problem.assignment],
        problem.rules.refuges(brokers)[work.state.assignment],
        problem.rules.destinations(brokers)[work.state.assignment],
    )
    assert allowed[came].all()
    assert not drained[work.state.assignment].any()


def test_who_left_may_come_back_to_an_old_broker_though_only_new_ones_receive() -> None:
    rules = MoveRules(joining=mask(0, 0, 1))
    work = Refinement(example([[0], [0]], [10], 3, [0, 0], rules=rules))
    work.state.assignment[0] = 2
    work.restart(work.state.assignment)
    work.respond([1.0], INDIFFERENT)
    assert work.state.assignment.tolist() == [0, 0]

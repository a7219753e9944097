"""What holds for every planner that there is by a name: no plan overloads, moves anybody twice, or breaks a rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance import enumeration
from tests.balance.enumeration import assignments, highest, tiny
from tests.balance.examples import example
from tests.balance.reference import ruled, small
from tests.examples import examples
from tocsin.balance import policies
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import check
from tocsin.balance.planners.planner import Planner
from tocsin.balance.policies import PLANNERS

SEEDS = st.integers(0, 2**32 - 1)

pytestmark = pytest.mark.parametrize("planner", [policies.planner(name) for name in PLANNERS], ids=PLANNERS)


@hypothesis_settings(max_examples=examples(40))
@given(seed=SEEDS, capacities=st.booleans())
def test_everybody_is_somewhere_and_the_highest_load_does_not_rise(
    planner: Planner, seed: int, capacities: bool
) -> None:
    problem = small(seed, capacities=capacities)
    plan = planner.plan(problem)
    check(problem.workload, plan.assignment)
    assert plan.after.max <= plan.before.max


@hypothesis_settings(max_examples=examples(40))
@given(seed=SEEDS)
def test_moves_are_those_who_end_elsewhere_each_once(planner: Planner, seed: int) -> None:
    problem = ruled(small(seed), seed)
    plan = planner.plan(problem)
    assert (plan.moves.subscriber == np.flatnonzero(plan.assignment != problem.assignment)).all()
    assert (plan.moves.source == problem.assignment[plan.moves.subscriber]).all()
    assert (plan.moves.destination == plan.assignment[plan.moves.subscriber]).all()


@hypothesis_settings(max_examples=examples(40))
@given(seed=SEEDS)
def test_the_same_problem_has_the_same_plan(planner: Planner, seed: int) -> None:
    problem = replace(small(seed), seed=seed)
    assert (planner.plan(problem).assignment == planner.plan(problem).assignment).all()


@hypothesis_settings(max_examples=examples(60))
@given(seed=SEEDS, capacities=st.booleans())
def test_the_rules_hold(planner: Planner, seed: int, capacities: bool) -> None:
    problem = ruled(small(seed, capacities=capacities), seed)
    rules, brokers, now = problem.rules, problem.workload.brokers, problem.assignment
    plan = planner.plan(problem)
    leaves = rules.must_empty(brokers)[now]
    came = plan.assignment != now
    allowed = np.where(leaves, rules.refuges(brokers)[plan.assignment], rules.destinations(brokers)[plan.assignment])
    assert allowed[came].all()
    assert rules.sources(brokers)[now][came].all()
    assert rules.fixed is None or not came[rules.fixed & ~leaves].any()
    assert problem.max_moves is None or came.sum() <= problem.max_moves
    if problem.max_moves is None or problem.max_moves >= leaves.sum():
        assert came[leaves].all()


@pytest.mark.parametrize(
    ("rows", "rates", "brokers"),
    [
        pytest.param([[0], [0, 1]], [5, 5], 1, id="one broker"),
        pytest.param([[], [], []], [5], 2, id="no subscriptions"),
        pytest.param([[], []], [], 2, id="nothing to subscribe to"),
        pytest.param([[0], [0, 1], [1]], [0, 0], 2, id="all rates zero"),
        pytest.param([[0, 1, 2], [3], [3]], [900, 900, 900, 1], 3, id="one giant"),
        pytest.param([[0, 1]] * 9, [5, 5], 3, id="identical subscribers"),
        pytest.param([], [5], 2, id="no subscribers"),
    ],
)
def test_degenerate_workloads_have_a_plan(
    planner: Planner, rows: list[list[int]], rates: list[int], brokers: int
) -> None:
    problem = example(rows, rates, brokers, [0] * len(rows))
    plan = planner.plan(problem)
    check(problem.workload, plan.assignment)
    assert plan.lower_bound <= plan.after.max <= plan.before.max


@hypothesis_settings(max_examples=examples(40))
@given(seed=st.integers(0, 10_000), capacities=st.booleans())
def test_a_plan_is_between_the_optimum_and_the_start(planner: Planner, seed: int, capacities: bool) -> None:
    workload, now = tiny(seed, capacities=capacities)
    plan = planner.plan(Problem(workload, now))
    best = highest(workload, assignments(Problem(workload, now))).min()
    assert plan.lower_bound <= best * (1 + 1e-9)
    assert best <= plan.after.max <= plan.before.max
    assert plan.moves_lower_bound <= len(plan.moves)


@hypothesis_settings(max_examples=examples(40))
@given(seed=st.integers(0, 10_000))
def test_with_rules_a_plan_is_one_of_those_allowed_and_its_bounds_hold(planner: Planner, seed: int) -> None:
    problem = enumeration.ruled(seed)
    plan = planner.plan(problem)
    allowed = assignments(problem)
    assert (allowed == plan.assignment).all(axis=1).any()
    assert plan.lower_bound <= highest(problem.workload, allowed).min() * (1 + 1e-9)
    assert plan.moves_lower_bound <= len(plan.moves)

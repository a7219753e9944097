"""Tocsin's own shuffle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance.examples import example, mask
from tests.balance.reference import ruled, small
from tocsin.balance.instances.kinds import Kind, make
from tocsin.balance.plan import Status
from tocsin.balance.planners.gsh import GSH
from tocsin.balance.planners.migrate import Migrate
from tocsin.balance.planners.shuffle import Shuffle
from tocsin.balance.problem import Problem, Rules
from tocsin.balance.workload import check

SEEDS = st.integers(0, 2**32 - 1)
CITY = Kind(1_500, 6, 200, (5, 15))


@hypothesis_settings(max_examples=40)
@given(seed=SEEDS, capacities=st.booleans())
def test_everybody_is_somewhere_and_the_highest_load_does_not_rise(seed: int, capacities: bool) -> None:
    problem = small(seed, capacities=capacities)
    plan = Shuffle().plan(problem)
    check(problem.workload, plan.assignment)
    assert plan.after.max <= plan.before.max


@hypothesis_settings(max_examples=40)
@given(seed=SEEDS)
def test_the_same_problem_has_the_same_plan(seed: int) -> None:
    problem = replace(small(seed), seed=seed)
    assert (Shuffle().plan(problem).assignment == Shuffle().plan(problem).assignment).all()


@pytest.mark.parametrize("seed", range(3))
def test_it_is_better_than_the_papers_shuffle_and_far_better_than_the_start(seed: int) -> None:
    problem = Problem(*make(CITY, seed))
    plan = Shuffle().plan(problem)
    assert plan.after.max < 0.99 * GSH().plan(problem).after.max
    assert plan.after.cov < 0.002
    assert plan.status is Status.BALANCED


def test_communities_are_found() -> None:
    rows = [[4 * (i % 5) + k for k in range(4)] for i in range(100)]
    plan = Shuffle().plan(example(rows, [10] * 20, 5, [0] * 100))
    assert plan.after.max == plan.lower_bound


def test_groups_stay_on_the_broker_where_most_of_their_members_are() -> None:
    problem = Problem(*make(CITY, 1))
    plan = Shuffle().plan(problem)
    assert len(Shuffle().plan(problem.starting_at(plan.assignment)).moves) == 0


def test_with_a_target_whoever_can_stay_stays() -> None:
    problem = Problem(*make(CITY, 1))
    best = Shuffle().plan(problem)
    eased = Shuffle().plan(replace(problem, target=best.ratio * 1.02))
    assert eased.after.max <= best.after.max * 1.02
    assert len(eased.moves) < len(best.moves)


def test_what_meets_the_target_is_not_shuffled() -> None:
    problem = Problem(*make(CITY, 1), target=100.0)
    plan = Shuffle().plan(problem)
    assert (plan.status, len(plan.moves)) == (Status.IDLE, 0)


def test_a_budget_is_kept() -> None:
    problem = Problem(*make(CITY, 1), max_moves=50)
    plan = Shuffle().plan(problem)
    assert plan.planner == "shuffle"
    assert len(plan.moves) <= 50
    assert (plan.assignment == Migrate().plan(problem).assignment).all()


def test_everybody_can_start_nowhere() -> None:
    workload, now = make(CITY, 1)
    plan = Shuffle().plan(Problem(workload, np.full_like(now, -1)))
    check(workload, plan.assignment)
    assert plan.after.cov < 0.002


@hypothesis_settings(max_examples=60)
@given(seed=SEEDS, capacities=st.booleans())
def test_the_rules_hold(seed: int, capacities: bool) -> None:
    problem = replace(ruled(small(seed, capacities=capacities), seed), max_moves=None)
    rules, brokers, now = problem.rules, problem.workload.brokers, problem.assignment
    plan = Shuffle().plan(problem)
    leaves = rules.drained(brokers)[now]
    came = plan.assignment != now
    allowed = np.where(leaves, rules.refuges(brokers)[plan.assignment], rules.destinations(brokers)[plan.assignment])
    assert allowed[came].all()
    assert rules.sources(brokers)[now][came].all()
    assert came[leaves].all()
    assert rules.fixed is None or not came[rules.fixed & ~leaves].any()


def test_only_a_new_broker_receives() -> None:
    workload, now = make(CITY, 1)
    now[now == 5] = 0
    plan = Shuffle().plan(Problem(workload, now, Rules(joining=mask(0, 0, 0, 0, 0, 1))))
    assert set(plan.moves.destination) == {5}
    assert plan.after.max < plan.before.max


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
def test_degenerate_workloads_have_a_plan(rows: list[list[int]], rates: list[int], brokers: int) -> None:
    problem = example(rows, rates, brokers, [0] * len(rows))
    plan = Shuffle().plan(problem)
    check(problem.workload, plan.assignment)
    assert plan.lower_bound <= plan.after.max <= plan.before.max


def test_identical_subscribers_are_spread_evenly() -> None:
    plan = Shuffle().plan(example([[0, 1]] * 9, [5, 5], 3, [0] * 9))
    assert np.bincount(plan.assignment).tolist() == [3, 3, 3]

"""Tocsin's own shuffle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.balance.examples import example, mask
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.plan import PlanStatus
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import check
from tocsin.balance.planners.gsh import GSH
from tocsin.balance.planners.migrate import Migrate
from tocsin.balance.planners.shuffle import Shuffle

SEEDS = st.integers(0, 2**32 - 1)
CITY = InstanceKind(1_500, 6, 200, (5, 15))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_better_than_the_papers_shuffle_and_far_better_than_the_start(seed: int) -> None:
    problem = Problem(*make(CITY, seed))
    plan = Shuffle().plan(problem)
    assert plan.after.max < 0.99 * GSH().plan(problem).after.max
    assert plan.after.cov < 0.002
    assert plan.status is PlanStatus.BALANCED


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
    assert (plan.status, len(plan.moves)) == (PlanStatus.IDLE, 0)


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


def test_only_a_new_broker_receives() -> None:
    workload, now = make(CITY, 1)
    now[now == 5] = 0
    plan = Shuffle().plan(Problem(workload, now, MoveRules(joining=mask(0, 0, 0, 0, 0, 1))))
    assert set(plan.moves.destination) == {5}
    assert plan.after.max < plan.before.max


def test_identical_subscribers_are_spread_evenly() -> None:
    plan = Shuffle().plan(example([[0, 1]] * 9, [5, 5], 3, [0] * 9))
    assert np.bincount(plan.assignment).tolist() == [3, 3, 3]

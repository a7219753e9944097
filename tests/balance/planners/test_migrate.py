"""Tocsin's own migration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.balance.examples import mask
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.plan import PlanStatus, Reason
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import check
from tocsin.balance.planners.gsh import GSH
from tocsin.balance.planners.migrate import Migrate

SEEDS = st.integers(0, 2**32 - 1)
CITY = InstanceKind(1_500, 6, 200, (5, 15))
TOWN = InstanceKind(3_000, 5, 300, (10, 30))
CALM = InstanceKind(1_500, 6, 200, (5, 15), skew=0.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_papers_shuffles_quality_costs_hardly_more_moves_than_any_plan_needs(seed: int) -> None:
    problem = Problem(*make(TOWN, seed))
    shuffle = GSH().plan(problem)
    plan = Migrate().plan(replace(problem, target=shuffle.ratio))
    assert plan.status is PlanStatus.BALANCED
    assert plan.after.max <= shuffle.after.max
    assert len(plan.moves) <= 1.1 * plan.moves_lower_bound


def test_a_lower_target_costs_more_moves() -> None:
    problem = Problem(*make(CITY, 1))
    shuffle = GSH().plan(problem)
    near, far = (Migrate().plan(replace(problem, target=shuffle.ratio * factor)) for factor in (1.05, 0.99))
    assert far.after.max <= 0.99 * shuffle.after.max
    assert len(near.moves) < len(far.moves)


def test_what_meets_the_target_is_left_alone() -> None:
    plan = Migrate().plan(Problem(*make(CITY, 1), target=100.0))
    assert (plan.status, len(plan.moves)) == (PlanStatus.IDLE, 0)


def test_nobody_moves_for_a_lower_load_than_is_enough() -> None:
    problem = Problem(*make(CITY, 1))
    best = Migrate().plan(problem)
    enough = 1.1 * best.after.mean
    plan = Migrate().plan(replace(problem, enough=enough))
    assert plan.after.max <= enough
    assert len(plan.moves) <= 1.1 * plan.moves_lower_bound < len(best.moves)


def test_what_would_be_enough_is_not_bought_at_any_price() -> None:
    problem = Problem(*make(CITY, 1))
    wanted = replace(problem, enough=1.0)
    assert len(Migrate().plan(wanted).moves) == len(Migrate().plan(problem).moves)
    bought = Migrate().plan(replace(problem, target=1.0))
    assert len(Migrate().plan(wanted).moves) < len(bought.moves)


def test_a_target_that_nothing_reaches_is_said_to_be_out_of_reach() -> None:
    plan = Migrate().plan(Problem(*make(CITY, 1), target=1.0))
    assert plan.status is PlanStatus.STUCK
    assert plan.after.max < plan.before.max


@pytest.mark.parametrize("budget", [0, 1, 20, 200, 2000])
def test_a_budget_is_kept(budget: int) -> None:
    problem = Problem(*make(CITY, 1), max_moves=budget)
    plan = Migrate().plan(problem)
    assert len(plan.moves) <= budget
    assert plan.after.max < plan.before.max or budget <= 1


def test_a_plan_that_the_budget_cut_short_says_so() -> None:
    problem = Problem(*make(CITY, 1))
    assert Migrate().plan(replace(problem, max_moves=50)).status is PlanStatus.CAPPED
    assert Migrate().plan(problem).status is PlanStatus.BALANCED


def test_a_larger_budget_buys_a_lower_load() -> None:
    problem = Problem(*make(CITY, 1))
    highest = [Migrate().plan(replace(problem, max_moves=budget)).after.max for budget in (50, 100, 200, 400)]
    assert highest == sorted(highest, reverse=True)


def test_draining_comes_first_when_the_budget_is_short() -> None:
    workload, now = make(CITY, 1)
    drains = int((now == 3).sum())
    rules = MoveRules(draining=mask(0, 0, 0, 1, 0, 0))
    short = Migrate().plan(Problem(workload, now, rules, max_moves=drains - 5))
    assert set(short.moves.reason) == {Reason.DRAIN}
    assert short.status is PlanStatus.CAPPED
    enough = Migrate().plan(Problem(workload, now, rules, max_moves=drains + 5))
    assert not (enough.assignment == 3).any()
    assert len(enough.moves) <= drains + 5


def test_a_new_broker_takes_its_share_and_nothing_moves_between_the_old_ones() -> None:
    workload, now = make(CITY, 1)
    now[now == 5] = 0
    plan = Migrate().plan(Problem(workload, now, MoveRules(joining=mask(0, 0, 0, 0, 0, 1))))
    assert set(plan.moves.destination) == {5}
    assert set(plan.moves.reason) == {Reason.JOIN}
    assert plan.after.max < plan.before.max


def test_everybody_can_start_nowhere() -> None:
    workload, now = make(CITY, 1)
    plan = Migrate().plan(Problem(workload, np.full_like(now, -1)))
    check(workload, plan.assignment)
    assert plan.after.cov < 0.02


def test_a_larger_broker_ends_with_more_load() -> None:
    workload, now = make(CALM, 1)
    roomy = replace(workload, capacity=np.array([1.0, 1.0, 1.0, 1.0, 1.0, 3.0]))
    plan = Migrate().plan(Problem(roomy, now))
    total = plan.after.incoming + plan.after.outgoing
    assert total[5] > 2 * total[:5].max()
    assert plan.after.max < plan.before.max


def test_a_pinned_broker_that_is_too_hot_does_not_keep_the_others_from_balancing() -> None:
    workload, now = make(CITY, 1)
    plan = Migrate().plan(Problem(workload, now, MoveRules(pinned=mask(1, 0, 0, 0, 0, 0))))
    assert (plan.after.loads[0], plan.after.max) == (plan.before.loads[0], plan.before.max)
    assert plan.after.loads[1:].max() < plan.before.loads[1:].max()

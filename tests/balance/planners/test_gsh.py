"""The greedy shuffle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance.examples import example, mask
from tests.balance.reference import Brokers, ruled, shuffled, small
from tests.examples import examples
from tocsin.balance.bounds import lower_bound
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.plan import PlanStatus, Reason
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.planners.gsh import GSH

SEEDS = st.integers(0, 2**32 - 1)
EXACT = GSH(only_better=False)


def _expected(problem: Problem) -> list[list[int]]:
    brokers, where = Brokers(problem), shuffled(problem)
    movers = [i for i in where if where[i] != brokers.home[i]]
    return [[i, brokers.home[i], where[i]] for i in brokers.heaviest_first(movers)]


@hypothesis_settings(max_examples=examples(300))
@given(seed=SEEDS, capacities=st.booleans())
def test_every_move_is_the_references(seed: int, capacities: bool) -> None:
    problem = small(seed, capacities=capacities)
    assert EXACT.plan(problem).steps.tolist() == _expected(problem)


@hypothesis_settings(max_examples=examples(200))
@given(seed=SEEDS, capacities=st.booleans())
def test_every_move_is_the_references_under_rules(seed: int, capacities: bool) -> None:
    problem = replace(ruled(small(seed, capacities=capacities), seed), max_moves=None)
    assert EXACT.plan(problem).steps.tolist() == _expected(problem)


def test_every_move_is_the_references_with_more_brokers_than_bits_in_a_word() -> None:
    problem = Problem(*make(InstanceKind(160, 70, 90, (1, 6), popularity=0.8), seed=2))
    assert EXACT.plan(problem).steps.tolist() == _expected(problem)


@given(seed=SEEDS)
def test_where_everybody_is_now_does_not_matter(seed: int) -> None:
    problem = small(seed)
    elsewhere = problem.starting_at(np.full_like(problem.assignment, problem.workload.brokers - 1))
    assert (EXACT.plan(problem).assignment == EXACT.plan(elsewhere).assignment).all()


@given(seed=SEEDS)
def test_figures_are_those_of_the_assignments(seed: int) -> None:
    problem = ruled(small(seed, capacities=True), seed)
    plan = GSH().plan(problem)
    for figures, assignment in ((plan.before, problem.assignment), (plan.after, plan.assignment)):
        loads = Loads(problem.workload, assignment)
        assert (figures.incoming == loads.incoming).all()
        assert (figures.outgoing == loads.outgoing).all()
        assert (figures.loads == loads.utilisation).all()


@given(seed=SEEDS)
def test_the_highest_load_never_rises(seed: int) -> None:
    plan = GSH().plan(small(seed))
    assert plan.after.max <= plan.before.max


@given(seed=SEEDS)
def test_rules_hold(seed: int) -> None:
    problem = ruled(small(seed), seed)
    plan, rules, brokers = EXACT.plan(problem), problem.rules, problem.workload.brokers
    moves, drained = plan.moves, problem.rules.must_empty(problem.workload.brokers)
    assert problem.max_moves is None or len(moves) <= problem.max_moves
    assert rules.sources(brokers)[moves.source].all()
    assert (drained[moves.source] | rules.destinations(brokers)[moves.destination]).all()
    assert rules.refuges(brokers)[moves.destination].all()
    if rules.fixed is not None:
        assert (drained[moves.source] | ~rules.fixed[moves.subscriber]).all()
    if problem.max_moves is None or problem.max_moves >= np.count_nonzero(drained[problem.assignment]):
        assert not drained[plan.assignment].any()


def test_heaviest_first_each_to_the_least_loaded() -> None:
    plan = GSH().plan(example([[0], [1], [2], [3]], [10, 40, 20, 30], 2, [1, 1, 1, 1]))
    assert plan.assignment.tolist() == [0, 0, 1, 1]
    assert plan.steps.tolist() == [[1, 1, 0], [0, 1, 0]]
    assert plan.status is PlanStatus.BALANCED
    assert set(plan.moves.reason) == {Reason.SHUFFLE}


def test_a_shuffle_that_would_raise_the_highest_load_is_not_proposed() -> None:
    problem = example([[0], [1], [0], [1]], [10, 10], 2, [0, 1, 0, 1])
    assert GSH().plan(problem).status is PlanStatus.IDLE
    worse = example([[0], [0], [1], [1]], [10, 10], 2, [0, 0, 1, 1])
    plan = GSH().plan(worse)
    assert (plan.status, len(plan.moves), plan.after.max) == (PlanStatus.STUCK, 0, 30.0)
    assert EXACT.plan(worse).after.max == 40.0


def test_a_target_that_is_met_leaves_all_in_place() -> None:
    problem = example([[0]] * 6, [10], 2, [0, 0, 0, 0, 1, 1])
    met = problem.workload.own.sum() / lower_bound(problem)
    assert GSH().plan(replace(problem, target=met)).status is PlanStatus.IDLE
    assert GSH().plan(replace(problem, target=1.01)).status is PlanStatus.BALANCED
    missed = example([[0], [1], [2]], [10, 10, 10], 2, [0, 0, 0], target=1.01)
    assert GSH().plan(missed).status is PlanStatus.STUCK


def test_a_budget_is_for_the_heaviest_and_what_drains_has_its_own() -> None:
    problem = example([[0], [1], [2], [3]], [40, 30, 20, 10], 3, [0, 0, 0, 2], rules=MoveRules(draining=mask(0, 0, 1)))
    plan = GSH().plan(replace(problem, max_moves=2))
    assert plan.moves.subscriber.tolist() == [1, 3]
    assert plan.status is PlanStatus.CAPPED
    assert GSH().plan(replace(problem, max_moves=1)).moves.subscriber.tolist() == [3]


def test_with_joining_brokers_everybody_stays_or_goes_to_one_of_them() -> None:
    plan = GSH().plan(example([[0]] * 9, [10], 3, [0] * 5 + [1] * 4, rules=MoveRules(joining=mask(0, 0, 1))))
    assert set(plan.moves.destination.tolist()) == {2}
    assert np.bincount(plan.assignment).tolist() == [3, 3, 3]


def test_whoever_is_nowhere_is_placed() -> None:
    plan = GSH().plan(example([[0]] * 4, [10], 2, [-1] * 4))
    assert plan.assignment.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("rows", "rates", "brokers"),
    [([[0, 1], [1]], [5, 6], 1), ([], [5], 3)],
    ids=["one broker", "nobody"],
)
def test_there_is_nothing_to_do(rows: list[list[int]], rates: list[int], brokers: int) -> None:
    plan = GSH().plan(example(rows, rates, brokers, [0] * len(rows)))
    assert plan.status is PlanStatus.IDLE


@pytest.mark.parametrize(
    ("rows", "rates"), [([[], [], []], []), ([[0, 1], [0]], [0, 0])], ids=["no subscriptions", "all rates zero"]
)
def test_without_any_load_the_first_broker_is_as_good_as_any(rows: list[list[int]], rates: list[int]) -> None:
    plan = GSH().plan(example(rows, rates, 2, [1] * len(rows)))
    assert plan.assignment.tolist() == [0] * len(rows)


def test_identical_subscribers_are_dealt_out_evenly() -> None:
    plan = GSH().plan(example([[0, 1]] * 9, [3, 4], 3, [0] * 9))
    assert plan.assignment.tolist() == [0, 1, 2] * 3


def test_one_giant_is_left_alone() -> None:
    plan = GSH().plan(example([[0], [1], [2]], [1000, 1, 1], 2, [0, 0, 0]))
    assert plan.assignment.tolist() == [0, 1, 1]

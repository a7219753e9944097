"""Similarity-based dynamic migration, by examples."""

from __future__ import annotations

from tests.balance.examples import example, mask
from tocsin.balance.model.plan import PlanStatus, Reason
from tocsin.balance.model.problem import MoveRules
from tocsin.balance.planners.ldm import LDM
from tocsin.balance.planners.sdm import SDM


def test_the_most_similar_broker_is_chosen_though_it_is_not_the_least_loaded() -> None:
    problem = example([[0]] * 4 + [[0], [1]], [10, 5], 3, [0, 0, 0, 0, 1, 2])
    assert LDM().plan(problem).steps.tolist()[0] == [0, 0, 2]
    plan = SDM().plan(problem)
    assert plan.steps.tolist()[0] == [0, 0, 1]
    assert set(plan.moves.reason) == {Reason.SHARING}


def test_similarity_is_by_rate_not_by_number() -> None:
    rows = [[0, 1, 2]] * 4 + [[0, 1], [2]]
    plan = SDM().plan(example(rows, [1, 1, 10], 3, [0, 0, 0, 0, 1, 2]))
    assert plan.steps.tolist()[0] == [0, 0, 2]


def test_of_equally_similar_brokers_the_less_loaded_then_the_lower_number_is_chosen() -> None:
    rows = [[0]] * 6 + [[0], [0], [0, 1]]
    plan = SDM().plan(example(rows, [10, 1], 4, [0] * 6 + [3, 2, 1]))
    assert plan.steps.tolist()[0] == [0, 0, 2]


def test_a_broker_that_is_not_below_the_mean_receives_nobody() -> None:
    rows = [[0]] * 6 + [[0]] * 5 + [[1]]
    plan = SDM().plan(example(rows, [10, 10], 3, [0] * 6 + [1] * 5 + [2]))
    assert plan.steps.tolist()[0] == [0, 0, 2]


def test_the_policy_is_stuck_when_nobody_that_may_receive_is_below_the_mean() -> None:
    rules = MoveRules(pinned=mask(0, 0, 1))
    plan = SDM().plan(example([[0]] * 5 + [[0]] * 4, [10], 3, [0] * 5 + [1] * 4, rules=rules))
    assert plan.status is PlanStatus.STUCK
    assert len(plan.steps) == 0


def test_if_the_most_similar_broker_cannot_take_a_subscriber_the_next_subscriber_is_tried() -> None:
    problem = example([[0, 1], [2], [0]], [10, 30, 5], 3, [0, 0, 1])
    assert LDM().plan(problem).steps.tolist()[0] == [0, 0, 2]
    assert SDM().plan(problem).steps.tolist()[0] == [1, 0, 2]


def test_total_load_stays_lower_than_with_the_load_based_policy() -> None:
    groups = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    rows = [groups[i % 3] for i in range(30)]
    now = [0 if i < 24 else i % 3 for i in range(30)]
    problem = example(rows, [10] * 9, 3, now)
    assert SDM(0.1).plan(problem).after.total < LDM(0.1).plan(problem).after.total

"""Load-based dynamic migration, by examples."""

from __future__ import annotations

from tests.balance.examples import example, mask
from tocsin.balance.model.plan import PlanStatus, Reason
from tocsin.balance.model.problem import MoveRules
from tocsin.balance.planners.ldm import LDM


def test_the_heaviest_of_the_most_loaded_goes_to_the_least_loaded() -> None:
    rows = [[0], [1], [2], [3], [4]]
    plan = LDM(0.3).plan(example(rows, [30, 40, 20, 15, 5], 3, [0, 0, 0, 1, 2]))
    assert plan.steps.tolist()[0] == [1, 0, 2]
    assert set(plan.moves.reason) == {Reason.OVERLOAD}


def test_the_first_that_fits_moves_if_heavier_ones_do_not() -> None:
    plan = LDM().plan(example([[0], [1], [2]], [100, 20, 10], 2, [0, 0, 0]))
    assert plan.steps.tolist()[0] == [0, 0, 1]
    stuck = LDM().plan(example([[0], [1], [2], [3]], [100, 20, 10, 50], 2, [0, 0, 0, 1]))
    assert stuck.steps.tolist()[0] == [1, 0, 1]


def test_of_equal_subscribers_and_brokers_the_lower_number_is_first() -> None:
    plan = LDM(0.0).plan(example([[0], [1], [2]], [10, 10, 10], 3, [1, 1, 1]))
    assert plan.steps.tolist() == [[0, 1, 0], [1, 1, 2]]


def test_what_the_destination_holds_already_makes_a_move_valid() -> None:
    rates = [10, 10, 15, 10, 10]
    shared = LDM(0.1).plan(example([[0, 1], [2], [0], [1]], rates, 2, [0, 0, 1, 1]))
    assert shared.steps.tolist()[0] == [0, 0, 1]
    strange = LDM(0.1).plan(example([[0, 1], [2], [3], [4]], rates, 2, [0, 0, 1, 1]))
    assert strange.status is PlanStatus.STUCK
    assert len(strange.steps) == 0


def test_the_least_loaded_is_so_by_its_capacity() -> None:
    rows = [[0]] * 9
    plan = LDM(0.0).plan(example(rows, [10], 3, [0] * 7 + [1, 2], capacity=[1.0, 1.0, 4.0]))
    assert plan.steps.tolist()[0] == [0, 0, 2]


def test_with_joining_brokers_nothing_moves_between_the_old_ones() -> None:
    rules = MoveRules(joining=mask(0, 0, 1))
    plan = LDM(0.0).plan(example([[0]] * 9, [10], 3, [0] * 8 + [1], rules=rules))
    assert set(plan.moves.destination.tolist()) == {2}
    assert set(plan.moves.reason) == {Reason.JOIN}

"""Where newcomers are placed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.balance.examples import example, mask
from tocsin.balance import policies
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.problem import MoveRules
from tocsin.balance.placement.paper import Anywhere, LeastLoaded, Nearest, RoundRobin
from tocsin.balance.placement.placement import Newcomer, Placement, View
from tocsin.balance.placement.twochoices import TwoChoices
from tocsin.errors import UnavailableError

EMPTY = Newcomer()
every = pytest.mark.parametrize("name", policies.PLACEMENTS)


def _view(
    loads: list[float],
    *,
    closed: tuple[int, ...] = (),
    locations: list[tuple[float, float]] | None = None,
    weights: list[float] | None = None,
    rates: list[int] | None = None,
    held: list[list[int]] | None = None,
    population: list[int] | None = None,
    idle: list[int] | None = None,
) -> View:
    brokers = len(loads)
    return View(
        loads=np.array(loads),
        weights=np.ones(brokers) if weights is None else np.array(weights),
        open=~np.isin(np.arange(brokers), closed),
        locations=None if locations is None else np.array(locations),
        rates=np.array(rates or [], np.int64),
        held=np.array(held or [], np.int32).reshape(-1, brokers),
        population=np.array(population or [1] * brokers),
        idle=np.array(idle or [0] * brokers),
    )


def _placed(placement: Placement, view: View, times: int) -> list[int]:
    return [placement.place(view, EMPTY) for _ in range(times)]


def test_a_view_has_utilisations_and_only_open_brokers_of_a_cluster() -> None:
    problem = example([[0], [0]], [10], 4, [0, 1], capacity=[40.0, 10.0, 1.0, 1.0])
    rules = MoveRules(draining=mask(0, 1, 0, 0), pinned=mask(0, 0, 1, 0), joining=mask(0, 0, 0, 1))
    view = View.of(Loads(problem.workload, problem.assignment), rules)
    assert view.loads.tolist() == [0.5, 2.0, 0.0, 0.0]
    assert view.open.tolist() == [True, False, False, True]


@every
def test_closed_brokers_get_nobody(name: str) -> None:
    view = _view([5, 0, 3, 0], closed=(1, 3), locations=[(9, 9), (0, 0), (9, 8), (0, 1)])
    placement = policies.placement(name)
    assert {placement.place(view, Newcomer(location=(0.0, 0.0))) for _ in range(20)} <= {0, 2}


@every
def test_the_only_open_broker_gets_everybody(name: str) -> None:
    assert _placed(policies.placement(name), _view([5, 0], closed=(1,)), 3) == [0, 0, 0]


@every
def test_without_any_open_broker_there_is_a_clear_error(name: str) -> None:
    with pytest.raises(UnavailableError, match="all are draining or pinned"):
        policies.placement(name).place(_view([1, 1], closed=(0, 1)), Newcomer(location=(0.0, 0.0)))


def test_the_nearest_broker_is_by_distance_and_of_equals_the_first() -> None:
    view = _view([9, 0, 0], locations=[(0, 0), (3, 4), (0, 10)])
    assert Nearest().place(view, Newcomer(location=(3.0, 3.0))) == 1
    assert Nearest().place(view, Newcomer(location=(0.0, 5.0))) == 1
    assert Nearest().place(view, Newcomer(location=(1.5, 2.0))) == 0


def test_whose_place_is_unknown_is_placed_by_turns() -> None:
    assert _placed(Nearest(), _view([0, 0, 0], locations=[(0, 0), (1, 1), (2, 2)]), 4) == [0, 1, 2, 0]
    placement = Nearest(otherwise=LeastLoaded())
    assert placement.place(_view([2, 1, 3]), Newcomer(location=(0.0, 0.0))) == 1


def test_round_robin_takes_every_open_broker_in_turn() -> None:
    placement = RoundRobin()
    assert _placed(placement, _view([0, 0, 0]), 4) == [0, 1, 2, 0]
    assert _placed(placement, _view([0, 0, 0], closed=(1,)), 3) == [2, 0, 2]
    assert _placed(placement, _view([0, 0, 0, 0]), 2) == [3, 0]


def test_random_placement_takes_every_broker_about_as_often() -> None:
    counts = Counter(_placed(Anywhere(seed=3), _view([9, 0, 0, 0]), 4000))
    assert all(abs(counts[j] - 1000) < 120 for j in range(4))


@pytest.mark.parametrize("policy", [Anywhere, TwoChoices])
def test_the_same_seed_makes_the_same_choices(policy: type[Anywhere] | type[TwoChoices]) -> None:
    view = _view([3, 1, 4, 1, 5])
    assert _placed(policy(seed=5), view, 50) == _placed(policy(seed=5), view, 50)
    assert _placed(policy(seed=5), view, 50) != _placed(policy(seed=6), view, 50)


def test_the_least_loaded_gets_everybody_who_comes_before_loads_change() -> None:
    assert _placed(LeastLoaded(), _view([3, 1, 2, 1]), 5) == [1] * 5


def test_two_choices_spread_those_who_come_together_and_spare_the_most_loaded() -> None:
    counts = Counter(_placed(TwoChoices(seed=1), _view([0, 1, 2, 9]), 600))
    assert counts[0] > counts[1] > counts[2] > 0
    assert counts[3] == 0


def test_two_choices_spread_newcomers_over_brokers_without_any_load() -> None:
    counts = Counter(_placed(TwoChoices(seed=1), _view([0, 0, 0]), 600))
    assert all(abs(counts[j] - 200) < 60 for j in range(3))


def _spread(loads: list[float], population: list[int], weights: list[float], newcomers: int) -> list[int]:
    """How many newcomers each broker gets who come one after the other, and bring no load yet."""
    placement, came = TwoChoices(seed=2), [0] * len(loads)
    for _ in range(newcomers):
        everybody = [before + more for before, more in zip(population, came, strict=True)]
        view = _view(loads, population=everybody, idle=came, weights=weights)
        came[placement.place(view, EMPTY)] += 1
    return came


def test_two_choices_spread_newcomers_who_have_no_load_yet() -> None:
    even = _spread([50, 100, 150], [10, 20, 30], [1, 1, 1], 60)
    assert all(abs(got - wanted) <= 4 for got, wanted in zip(even, [30, 20, 10], strict=True))
    quiet = _spread([0, 0, 0], [0, 0, 0], [1, 1, 1], 60)
    assert all(abs(got - 20) <= 4 for got in quiet)
    larger = _spread([0, 0, 0], [0, 0, 0], [0.1, 0.1, 0.05], 80)
    assert all(abs(got - wanted) <= 6 for got, wanted in zip(larger, [20, 20, 40], strict=True))


def test_a_view_counts_who_has_no_load_yet() -> None:
    problem = example([[0], [0, 1], [1], []], [10, 0], 2, [0, 1, 1, 1])
    view = View.of(Loads(problem.workload, problem.assignment))
    assert (view.population.tolist(), view.idle.tolist()) == ([1, 3], [0, 2])


def test_two_choices_look_at_what_the_newcomer_would_add() -> None:
    view = _view([100, 95], rates=[20, 10], held=[[3, 0], [1, 1]])
    known = Newcomer(subscriptions=np.array([0, 1], np.int32))
    assert view.loads_after(known, np.array([0, 1])).tolist() == [130.0, 145.0]
    assert TwoChoices().place(view, known) == 0
    assert TwoChoices().place(view, EMPTY) == 1


def test_what_the_newcomer_would_add_weighs_less_on_a_larger_broker() -> None:
    view = _view([1.0, 1.0], weights=[0.1, 0.01], rates=[20], held=[[0, 0]])
    known = Newcomer(subscriptions=np.array([0], np.int32))
    assert view.loads_after(known, np.array([0, 1])).tolist() == [5.0, 1.4]

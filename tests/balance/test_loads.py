"""The load model: equations 1 to 8, and loads that follow moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.balance.examples import example
from tests.balance.reference import Brokers, small
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.loads import Loads, cov, deviation, mean


def _same(loads: Loads) -> bool:
    anew = Loads(loads.workload, loads.assignment)
    return bool(
        (loads.held == anew.held).all()
        and (loads.incoming == anew.incoming).all()
        and (loads.outgoing == anew.outgoing).all()
    )


def test_a_broker_pulls_each_be_subscription_once_and_pushes_it_to_everybody() -> None:
    problem = example([[0, 1], [0], [1, 2]], [10, 20, 30], 2, [0, 0, 1])
    loads = Loads(problem.workload, problem.assignment)
    assert loads.incoming.tolist() == [30, 50]
    assert loads.outgoing.tolist() == [40, 50]
    assert loads.total.tolist() == [70, 100]
    assert loads.held.tolist() == [[2, 0], [1, 1], [0, 1]]


def test_with_capacities_load_is_utilisation() -> None:
    problem = example([[0], [0]], [10], 2, [0, 1], capacity=[40.0, 10.0])
    assert Loads(problem.workload, problem.assignment).utilisation.tolist() == [0.5, 2.0]


@given(seed=st.integers(0, 2**32 - 1), capacities=st.booleans())
def test_loads_are_those_of_the_equations(seed: int, capacities: bool) -> None:
    problem = small(seed, capacities=capacities)
    loads, brokers = Loads(problem.workload, problem.assignment), Brokers(problem)
    assert loads.total.tolist() == [brokers.bytes(j) for j in brokers.numbers]
    assert loads.utilisation.tolist() == [brokers.load(j) for j in brokers.numbers]
    assert cov(loads.utilisation) == pytest.approx(brokers.cov)


def test_loads_that_followed_thousands_of_moves_equal_recomputed_ones() -> None:
    rng = np.random.default_rng(1)
    workload, now = make(InstanceKind(200, 7, 60, (0, 9), popularity=1.0), seed=1)
    loads = Loads(workload, now)
    for step in range(5000):
        loads.move(int(rng.integers(200)), int(rng.integers(-1, 7)))
        assert step % 250 or _same(loads)
    assert _same(loads)


def test_incoming_load_changes_only_with_the_first_and_the_last_holder() -> None:
    problem = example([[0], [0], [0]], [10], 2, [0, 0, 0])
    loads = Loads(problem.workload, problem.assignment)
    seen = []
    for i in range(3):
        loads.move(i, 1)
        seen.append(loads.incoming.tolist())
    assert seen == [[10, 10], [10, 10], [0, 10]]


def test_whoever_is_nowhere_counts_nowhere() -> None:
    problem = example([[0], [1]], [10, 20], 2, [-1, 1])
    loads = Loads(problem.workload, problem.assignment)
    assert loads.total.tolist() == [0, 40]
    loads.move(1, -1)
    assert loads.total.tolist() == [0, 0]
    assert not loads.held.any()


def test_moving_somebody_to_where_it_is_changes_nothing() -> None:
    problem = example([[0, 1]], [10, 20], 2, [1])
    loads = Loads(problem.workload, problem.assignment)
    loads.move(0, 1)
    assert _same(loads)


def test_the_assignment_that_was_given_is_not_changed_by_moves() -> None:
    problem = example([[0]], [10], 2, [0])
    Loads(problem.workload, problem.assignment).move(0, 1)
    assert problem.assignment.tolist() == [0]


def test_mean_deviation_and_their_ratio() -> None:
    loads = np.array([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (mean(loads), deviation(loads), cov(loads)) == (5.0, 2.0, 0.4)


def test_without_any_load_or_any_broker_all_is_even() -> None:
    assert cov(np.zeros(3)) == 0.0
    assert (mean(np.zeros(0)), cov(np.zeros(0))) == (0.0, 0.0)

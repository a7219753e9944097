"""Bounds against the best of all assignments, and by examples that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance.enumeration import assignments, highest, ruled, tiny
from tests.examples import examples
from tocsin.balance.bounds import lower_bound, moves_lower_bound
from tocsin.balance.bounds.holders import HolderSums
from tocsin.balance.bounds.lowest import heaviest, replication, spread
from tocsin.balance.bounds.spectral import spectral_bound
from tocsin.balance.instances.kinds import InstanceKind, generate, make
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Int32s, Workload

SEEDS = st.integers(0, 10_000)


def _workload(rows: list[list[int]], rates: list[int], brokers: int, capacity: list[float] | None = None) -> Workload:
    return Workload(
        indptr=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        idx=np.array([k for row in rows for k in row], np.int32),
        rates=np.array(rates, np.int64),
        brokers=brokers,
        capacity=None if capacity is None else np.array(capacity),
    )


def _on(*brokers: int) -> Int32s:
    return np.array(brokers, np.int32)


def _bools(*values: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array(values, np.bool_)


@given(SEEDS, st.booleans())
def test_no_assignment_is_below_any_of_the_bounds(seed: int, capacities: bool) -> None:
    workload, now = tiny(seed, capacities=capacities)
    problem, holders = Problem(workload, now), HolderSums.of(workload)
    best = float(highest(workload, assignments(problem)).min()) * (1 + 1e-9)
    assert spread(workload, holders) <= best
    assert heaviest(workload) <= best
    assert replication(workload, holders, spread(workload, holders)) <= best
    assert lower_bound(problem) <= spectral_bound(problem, rounds=3) <= best


@given(SEEDS)
def test_no_assignment_that_keeps_to_the_rules_is_below_the_bound(seed: int) -> None:
    problem = ruled(seed)
    best = float(highest(problem.workload, assignments(problem)).min())
    assert lower_bound(problem) <= best * (1 + 1e-9)
    assert spectral_bound(problem, rounds=2) <= best * (1 + 1e-9)


@given(SEEDS, st.floats(0, 1))
@hypothesis_settings(max_examples=examples(200))
def test_no_plan_moves_fewer_than_the_bound(seed: int, quantile: float) -> None:
    problem = ruled(seed)
    every = assignments(problem)
    loads = highest(problem.workload, every)
    wanted = float(np.quantile(loads, quantile, method="lower"))
    moved = (every[loads <= wanted] != problem.assignment).sum(axis=1)
    assert moves_lower_bound(problem, wanted) <= moved.min()


def test_the_load_of_all_is_spread_over_all_capacity() -> None:
    workload = _workload([[0], [0, 1]], [10, 4, 99], 2, [1.0, 3.0])
    # 10 + 14 are sent, 10 + 4 come in; nobody holds the third.
    assert spread(workload, HolderSums.of(workload)) == 38 / 4


def test_the_heaviest_subscriber_is_received_and_sent_once_by_the_largest_broker() -> None:
    workload = _workload([[0], [0, 1]], [10, 4], 2, [1.0, 4.0])
    assert heaviest(workload) == 2 * 14 / 4


def test_a_subscription_whose_holders_do_not_fit_on_one_broker_is_counted_more_than_once() -> None:
    workload = _workload([[0]] * 6, [10], 3)
    holders = HolderSums.of(workload)
    assert spread(workload, holders) == pytest.approx(70 / 3)
    # Below 30, no broker serves three; below 30 all three hold it: 60 are sent and 30 come in.
    assert replication(workload, holders, 70 / 3) == pytest.approx(30)
    assert lower_bound(Problem(workload, _on(0, 0, 0, 0, 0, 0))) == pytest.approx(30)


def test_only_brokers_that_stay_open_count() -> None:
    workload = _workload([[0], [1]], [10, 10], 2)
    draining = MoveRules(draining=_bools(0, 1))
    assert lower_bound(Problem(workload, _on(0, 1))) == 20
    assert lower_bound(Problem(workload, _on(0, 1), draining)) == pytest.approx(40)


def test_a_broker_that_the_budget_does_not_empty_counts_as_open() -> None:
    workload = _workload([[0], [1]], [10, 10], 2)
    assert lower_bound(Problem(workload, _on(0, 1), MoveRules(draining=_bools(0, 1)), max_moves=0)) == 20


def test_what_is_pinned_stays_and_what_is_left_is_spread_over_the_others() -> None:
    workload = _workload([[0], [1], [2], [3]], [1, 10, 10, 10], 3)
    pinned = MoveRules(pinned=_bools(1, 0, 0))
    assert lower_bound(Problem(workload, _on(0, 1, 1, 1), pinned)) == 30
    assert lower_bound(Problem(workload, _on(0, 0, 0, 1), pinned)) == 2 + 20 + 20


def test_a_fixed_subscriber_keeps_its_broker_loaded() -> None:
    workload = _workload([[0], [0], [1]], [10, 1], 2)
    fixed = MoveRules(fixed=_bools(1, 1, 0))
    assert lower_bound(Problem(workload, _on(0, 0, 1), fixed)) == 30


@pytest.mark.parametrize("rows", [[], [[]], [[], []]], ids=["nobody", "one without any", "two without any"])
def test_without_load_the_bounds_are_nothing(rows: list[list[int]]) -> None:
    problem = Problem(_workload(rows, [3], 2), np.zeros(len(rows), np.int32))
    assert (lower_bound(problem), spectral_bound(problem), moves_lower_bound(problem, 0.0)) == (0, 0, 0)


def test_nobody_has_to_move_where_no_load_is_too_high() -> None:
    workload, now = generate("P", 1)
    assert moves_lower_bound(Problem(workload, now), float(Loads(workload, now).total.max())) == 0


def test_all_who_are_on_a_draining_broker_have_to_move_even_without_load() -> None:
    workload = _workload([[], [0], []], [10], 2)
    problem = Problem(workload, _on(1, 1, 0), MoveRules(draining=_bools(0, 1)))
    assert moves_lower_bound(problem, 20) == 2


def test_as_many_must_leave_as_it_takes_of_the_heaviest() -> None:
    workload = _workload([[0], [1], [2], [3]], [1, 2, 3, 4], 4)
    problem = Problem(workload, _on(0, 0, 0, 0))
    assert [moves_lower_bound(problem, t) for t in (20, 19, 12, 11, 6, 5)] == [0, 1, 1, 2, 2, 3]


def test_where_what_comes_in_must_fall_it_takes_more_moves_than_the_overloaded_brokers_need() -> None:
    # Both brokers hold both and are at 40; only together are the holders of each at 30.
    workload = _workload([[0], [1], [0], [1]], [10, 10], 2)
    problem = Problem(workload, _on(0, 0, 1, 1))
    assert moves_lower_bound(problem, 30) == 2


def test_where_the_load_is_out_of_reach_everybody_who_may_move_counts() -> None:
    workload = _workload([[0], [1], [0]], [10, 10], 2)
    problem = Problem(workload, _on(0, 0, 1), MoveRules(fixed=_bools(1, 0, 0)))
    assert moves_lower_bound(problem, 1) == 2


@pytest.mark.slow
def test_the_spectral_bound_is_above_the_even_spread_where_interests_are_mixed() -> None:
    workload, now = make(InstanceKind(300, 5, 100, (5, 15), periods=(10,)), 1)
    problem = Problem(workload, now)
    first, later = spectral_bound(problem, rounds=0), spectral_bound(problem, rounds=10)
    assert 1.05 * lower_bound(problem) < first < later < float(Loads(workload, now).total.max())


def test_the_spectral_bound_is_the_same_for_large_workloads_by_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    workload, now = make(InstanceKind(300, 5, 100, (5, 15)), 2)
    exact = spectral_bound(Problem(workload, now), rounds=2)
    monkeypatch.setattr("tocsin.balance.bounds.spectral._DENSE", 10)
    assert spectral_bound(Problem(workload, now), rounds=2) == pytest.approx(exact, rel=1e-4)

"""Groups that are peeled out of all subscribers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.balance.enumeration import tiny
from tests.balance.examples import example
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.refine.peeling import holders_of, peel_groups
from tocsin.balance.refine.state import refinement_state, subscription_rows


@given(seed=st.integers(0, 10_000), groups=st.integers(1, 9))
def test_everybody_is_in_one_of_the_groups(seed: int, groups: int) -> None:
    workload, _ = tiny(seed)
    members = np.arange(workload.subscribers)
    group = peel_groups(subscription_rows(workload), members, np.ones(groups))
    assert len(group) == workload.subscribers
    assert ((group >= 0) & (group < groups)).all()


def test_people_with_nothing_in_common_are_told_apart() -> None:
    problem = example([[0, 1], [2, 3], [0, 1], [2, 3], [0, 1], [2, 3]], [10, 10, 10, 10], 2, [0] * 6)
    group = peel_groups(subscription_rows(problem.workload), np.arange(6), np.ones(2))
    assert len(set(group[::2])) == len(set(group[1::2])) == 1
    assert group[0] != group[1]


def test_groups_are_as_large_as_there_is_room() -> None:
    workload, _ = make(InstanceKind(2_000, 3, 200, (5, 15)), seed=5)
    group = peel_groups(subscription_rows(workload), np.arange(2_000), np.array([1.0, 2.0, 1.0]))
    share = np.bincount(group, workload.own) / workload.own.sum()
    assert np.abs(share - [0.25, 0.5, 0.25]).max() < 0.03


def test_many_groups_are_peeled_in_rounds() -> None:
    workload, _ = make(InstanceKind(3_000, 30, 2_000, (3, 8), popularity=0.8), seed=5)
    group = peel_groups(subscription_rows(workload), np.arange(3_000), np.ones(30))
    assert set(group) == set(range(30))


def test_specialists_fetch_less_than_brokers_that_are_all_alike() -> None:
    workload, _ = make(InstanceKind(3_000, 6, 300, (5, 15)), seed=5)
    group = peel_groups(subscription_rows(workload), np.arange(3_000), np.ones(6))
    alike = (np.arange(3_000) % 6).astype(np.int32)
    incoming = [refinement_state(workload, each).load.sum() - workload.own.sum() for each in (group, alike)]
    assert incoming[0] < 0.9 * incoming[1]


def test_holders_are_the_rows_the_other_way_round() -> None:
    problem = example([[0, 2], [1], [2]], [1, 1, 1], 1, [0, 0, 0])
    holders = holders_of(subscription_rows(problem.workload), np.arange(3))
    assert holders.indptr.tolist() == [0, 1, 2, 4]
    assert holders.idx.tolist() == [0, 1, 0, 2]

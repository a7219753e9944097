"""Made instances are what their kind says, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.balance.instances.kinds import KINDS, InstanceKind, generate, make
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.workload import check
from tocsin.errors import InvalidError

SMALL = {
    "uniform": InstanceKind(500, 6, 200, (10, 30)),
    "popular": InstanceKind(500, 6, 200, (10, 30), popularity=1.05),
    "communities": InstanceKind(500, 6, 2000, (10, 30), popularity=1.0, communities=10),
}


@pytest.mark.parametrize("kind", SMALL.values(), ids=SMALL)
def test_every_subscriber_holds_as_many_as_the_kind_says_and_none_twice(kind: InstanceKind) -> None:
    workload, start = make(kind, 1)
    check(workload, start)
    assert (workload.subscribers, workload.brokers, workload.subscriptions) == (500, 6, kind.subscriptions)
    assert set(np.diff(workload.indptr)) == set(range(10, 31))


@pytest.mark.parametrize("kind", SMALL.values(), ids=SMALL)
def test_the_same_seed_makes_the_same_instance_and_another_does_not(kind: InstanceKind) -> None:
    (one, start), (again, restart), (other, _) = make(kind, 1), make(kind, 1), make(kind, 2)
    assert one.idx.tolist() == again.idx.tolist()
    assert one.rates.tolist() == again.rates.tolist()
    assert start.tolist() == restart.tolist()
    assert one.idx.tolist() != other.idx.tolist()


def test_who_is_to_hold_more_than_there_is_holds_all() -> None:
    workload, start = make(InstanceKind(50, 2, 3, (5, 9), popularity=2.0), 1)
    check(workload, start)
    assert np.diff(workload.indptr).max() == 3


def test_members_of_a_community_share_more_than_strangers() -> None:
    mixed, grouped = (make(InstanceKind(400, 4, 2000, (10, 30), communities=number), 1)[0] for number in (0, 8))
    assert np.unique(mixed.idx).size > 1.2 * np.unique(grouped.idx).size


def test_the_simulation_of_the_paper_starts_with_one_broker_of_more_than_2000_subscribers() -> None:
    workload, start = generate("S", 1)
    assert (workload.subscribers, workload.brokers, workload.subscriptions) == (10_000, 10, 1000)
    assert abs(len(workload.idx) - 200_000) < 2000
    assert np.bincount(start).max() > 2000


def test_the_prototype_of_the_paper_starts_out_of_balance() -> None:
    workload, start = generate("P", 1)
    loads = Loads(workload, start).total
    assert loads.max() > 1.8 * loads.mean()


def test_a_kind_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InvalidError, match=f"no kind of instance 'M'; the kinds are {', '.join(KINDS)}"):
        generate("M")

"""Workloads, and what is refused as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.balance.examples import example
from tocsin.balance.instances.kinds import generate
from tocsin.balance.model.workload import Workload, check
from tocsin.errors import InvalidError

GOOD = example([[0, 1], [1, 2], []], [10, 20, 30], 2, [0, 1, 1])


def _changed(**changes: Any) -> Workload:
    return replace(GOOD.workload, **changes)


def test_own_load_is_the_sum_of_the_rates() -> None:
    assert GOOD.workload.own.tolist() == [30, 50, 0]
    assert (GOOD.workload.subscribers, GOOD.workload.subscriptions) == (3, 3)
    assert GOOD.workload.held_by(1).tolist() == [1, 2]


def test_a_byte_weighs_less_on_a_broker_of_more_capacity() -> None:
    assert GOOD.workload.weights.tolist() == [1.0, 1.0]
    assert _changed(capacity=np.array([2.0, 4.0])).weights.tolist() == [0.5, 0.25]


def test_what_makes_sense_is_accepted() -> None:
    check(GOOD.workload, GOOD.assignment)
    check(_changed(capacity=np.array([1.0, 0.5]), broker_locations=np.zeros((2, 2))), GOOD.assignment)
    check(*generate("P"))
    nobody = example([], [], 1, [])
    check(nobody.workload, nobody.assignment)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": np.array([], np.int64)}, "indptr must begin with 0"),
        ({"indptr": np.array([1, 2, 4, 4])}, "indptr must begin with 0"),
        ({"indptr": np.array([0, 3, 2, 4])}, "never fall"),
        ({"indptr": np.array([0, 2, 3, 3])}, "length of idx, 4"),
        ({"idx": np.array([0, 1, 1, 3], np.int32)}, "BE subscription 3, but there are rates for 0 to 2"),
        ({"idx": np.array([0, -1, 1, 2], np.int32)}, "BE subscription -1"),
        ({"idx": np.array([0, 1, 2, 2], np.int32)}, "subscriber 1 holds a BE subscription twice"),
        ({"rates": np.array([10, -5, 30])}, "rate of BE subscription 1 is -5"),
        ({"brokers": 0}, "0 brokers"),
        ({"capacity": np.array([1.0])}, "capacity has the shape"),
        ({"capacity": np.array([1.0, 0.0])}, "capacity of broker 1 is 0.0"),
        ({"capacity": np.array([np.nan, 1.0])}, "capacity of broker 0 is nan"),
        ({"capacity": np.array([np.inf, 1.0])}, "capacity of broker 0 is inf"),
        ({"broker_locations": np.zeros((3, 2))}, "locations of the 2 brokers"),
        ({"subscriber_locations": np.full((3, 2), np.nan)}, "locations of the 3 subscribers"),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        check(_changed(**changes), GOOD.assignment)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ([0, 1], "for 2 subscribers, but there are 3"),
        ([0, 2, 1], "subscriber 1 is on broker 2, but the brokers are 0 to 1"),
        ([0, 1, -1], "subscriber 2 is on broker -1"),
    ],
)
def test_an_assignment_that_makes_no_sense_is_refused(assignment: list[int], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        check(GOOD.workload, np.array(assignment, np.int32))

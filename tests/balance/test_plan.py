"""A plan as data: shown, stored and read again, and refused when events have overtaken it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.codec import decode, encode
from tocsin.balance.model.explain import broker_changes, sentences
from tocsin.balance.model.plan import LoadFigures, Plan, PlanStatus, Reason, applicable, overtaken_moves
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.units import rate
from tocsin.balance.model.workload import Int32s, Workload
from tocsin.balance.planners.conclusion import make_plan
from tocsin.errors import InvalidError


def plan_of(seed: int, capacity: list[float] | None = None) -> tuple[Plan, Int32s]:
    """A plan that moves people about at random, and where they were."""
    workload, start = make(InstanceKind(40, 3, 20, (0, 5)), seed)
    if capacity is not None:
        workload = Workload(workload.indptr, workload.idx, workload.rates, 3, capacity=np.array(capacity))
    wanted = np.random.default_rng(seed).integers(0, 3, 40).astype(np.int32)
    reasons = [list(Reason)[i % len(Reason)] for i in range(40)]
    return make_plan(Problem(workload, start), "random", PlanStatus.STUCK, wanted, reasons), start


def same(one: object, other: object) -> bool:
    """Whether two are the same to the last digit and type."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__
        )
    return type(one) is type(other) and one == other


@settings(max_examples=examples(30))
@given(seed=st.integers(0, 2**20), capacity=st.sampled_from([None, [1.0, 3.0, 0.1]]))
def test_what_is_read_is_what_was_written(seed: int, capacity: list[float] | None) -> None:
    plan, _ = plan_of(seed, capacity)
    assert same(decode(encode(plan)), plan)


def test_a_plan_that_moves_nobody_can_be_stored() -> None:
    workload, start = make(InstanceKind(5, 2, 5, (1, 2)), 0)
    plan = make_plan(Problem(workload, start), "none", PlanStatus.IDLE, start, Reason.OVERLOAD)
    assert same(decode(encode(plan)), plan)
    assert sentences(plan) == ["none moves nobody.", "There was nothing to do."]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("status",), "sleepy"),
        (("moves", "destination", 0), 9),
        (("moves", "subscriber", 0), 40),
        (("assignment", 0), -2),
        (("assignment", 0), 2**40),
        (("moves", "reason"), ["overload"]),
        (("after", "loads"), [1.0]),
        (("lower_bound",), None),
        (("surprise",), 1),
    ],
)
def test_what_is_no_plan_is_not_read(path: tuple[str | int, ...], value: object) -> None:
    written = json.loads(encode(plan_of(1)[0]))
    where = written
    for step in path[:-1]:
        where = where[step]
    where[path[-1]] = value
    with pytest.raises(InvalidError, match="this is not a plan"):
        decode(json.dumps(written))


def test_a_line_for_each_broker_adds_up() -> None:
    plan, start = plan_of(2)
    for line in broker_changes(plan):
        people = np.count_nonzero(start == line.broker) - line.left + line.came
        assert people == np.count_nonzero(plan.assignment == line.broker)
        assert line.load_before == line.incoming_before + line.outgoing_before
        assert line.load_after == line.incoming_after + line.outgoing_after
    assert sum(line.left for line in broker_changes(plan)) == len(plan.moves)


def test_a_plan_can_be_told() -> None:
    workload = Workload(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([300_000, 200_000]), 2)
    problem = Problem(workload, np.zeros(2, np.int32))
    plan = make_plan(problem, "ldm", PlanStatus.BALANCED, np.array([0, 1], np.int32), Reason.OVERLOAD)
    assert sentences(plan) == [
        "ldm moves 1 of 2 subscribers: 1 because their broker is above the others. "
        "No plan that ends as low moves fewer than 1.",
        "The highest load falls from 1 MB/s to 600 kB/s; that is 1.000 times what no assignment can be below.",
        "cov goes from 1.000 to 0.200, what all brokers together handle from 1 MB/s to 1 MB/s.",
        "Its goal is reached.",
    ]


def test_loads_by_capacity_are_told_without_a_unit() -> None:
    plan, _ = plan_of(3, [1000.0, 3000.0, 100.0])
    assert "B/s" not in sentences(plan)[1]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B/s"), (999.4, "999 B/s"), (999.6, "1 kB/s"), (22_345_678, "22.3 MB/s"), (4e15, "4e+03 TB/s")],
)
def test_rates_are_written_as_people_read_them(value: float, text: str) -> None:
    assert rate(value) == text


def test_a_plan_holds_as_long_as_everybody_is_where_it_found_them() -> None:
    plan, start = plan_of(4)
    assert applicable(plan, start)
    bystander = int(np.flatnonzero(plan.assignment == start)[0])
    mover = int(plan.moves.subscriber[2])
    start[bystander] = (start[bystander] + 1) % 3
    assert applicable(plan, start)
    start[mover] = plan.assignment[mover]
    assert not applicable(plan, start)
    assert overtaken_moves(plan, start).tolist() == [2]
    assert overtaken_moves(plan, start[:mover]).tolist() == list(range(2, len(plan.moves)))


def test_nobody_left_overtakes_every_move() -> None:
    plan, _ = plan_of(4)
    assert len(overtaken_moves(plan, np.empty(0, np.int32))) == len(plan.moves)


def test_figures_of_no_brokers_are_zero() -> None:
    none = LoadFigures(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    assert (none.max, none.mean, none.cov, none.total) == (0.0, 0.0, 0.0, 0)

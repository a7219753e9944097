"""Beside a hot slice: the other nodes share what is left, and a new one has something at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slices.test_balancing import Scene
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.plan import Plan, PlanStatus, Reason
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Workload
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.planners.planner import Planner
from tocsin.balance.policies import planner
from tocsin.slices.levelling import Levelling


def problem(nodes: list[list[int]], joining: tuple[int, ...] = (), **options: object) -> Problem:
    """Nodes by what comes for each of their slices."""
    rates = np.array([rate for slices in nodes for rate in slices], np.int64)
    assignment = np.repeat(np.arange(len(nodes)), [len(slices) for slices in nodes]).astype(np.int32)
    workload = Workload(np.arange(len(rates) + 1), np.arange(len(rates), dtype=np.int32), rates, len(nodes))
    rules = MoveRules(joining=np.isin(np.arange(len(nodes)), joining), fixed=rates == 0)
    return Problem(workload, assignment, rules, **options)  # type: ignore[arg-type]


def falling(asked: Problem, assignment: np.ndarray) -> list[int]:
    return sorted((Loads(asked.workload, assignment).total // 2).tolist(), reverse=True)


@dataclass(frozen=True)
class Chaotic:
    """A planner that puts everything anywhere."""

    seed: int = 1
    name: str = "chaotic"

    def plan(self, problem: Problem) -> Plan:
        nodes = np.flatnonzero(problem.rules.destinations(problem.workload.brokers))
        anywhere = np.random.default_rng(self.seed).choice(nodes, len(problem.assignment)).astype(np.int32)
        stays = ~problem.rules.sources(problem.workload.brokers)[problem.assignment]
        chosen = np.where(stays, problem.assignment, anywhere).astype(np.int32)
        return make_plan(problem, self.name, PlanStatus.STUCK, chosen, Reason.OVERLOAD)


PLANNERS = [planner("migrate"), planner("ldm"), planner("gsh"), Chaotic()]
rates = st.one_of(st.integers(0, 9), st.integers(0, 1000), st.integers(10_000, 99_000))
nodes = st.lists(st.lists(rates, max_size=6), min_size=1, max_size=5)


def test_what_is_beside_a_hot_slice_goes_to_those_that_have_less() -> None:
    asked = problem([[9000, 10, 20], [300], [200]])
    assert falling(asked, Levelling(planner("migrate")).plan(asked).assignment)[0] == 9000


def test_a_planner_alone_leaves_a_new_node_empty_beside_a_hot_slice() -> None:
    asked = problem([[9000], [1000] * 4, []], (2,))
    assert len(planner("migrate").plan(asked).moves) == 0
    assert falling(asked, Levelling(planner("migrate")).plan(asked).assignment) == [9000, 2000, 2000]


def test_no_more_is_moved_than_the_budget_allows() -> None:
    asked = problem([[9000], [8000], [1000] * 8, []], (3,), max_moves=2)
    plan = Levelling(planner("migrate")).plan(asked)
    assert 1 <= len(plan.moves) <= 2
    assert set(plan.moves.destination.tolist()) == {3}


@pytest.mark.parametrize("base", PLANNERS, ids=lambda each: each.name)
@given(nodes=nodes, new=st.integers(0, 2), enough=st.none() | st.integers(1, 20_000), most=st.none() | st.just(3))
def test_the_loads_in_descending_order_never_get_worse(
    base: Planner, nodes: list[list[int]], new: int, enough: int | None, most: int | None
) -> None:
    joining = tuple(range(len(nodes), len(nodes) + new))
    asked = problem([*nodes, *[[]] * new], joining, enough=enough, max_moves=most)
    plan = Levelling(base).plan(asked)
    before, after = falling(asked, asked.assignment), falling(asked, plan.assignment)
    assert after <= before
    assert most is None or len(plan.moves) <= most
    assert len(plan.moves) == 0 or after < before or not any(before)
    if new:
        assert set(plan.moves.destination.tolist()) <= set(joining)


@pytest.mark.parametrize("base", PLANNERS, ids=lambda each: each.name)
@given(nodes=nodes)
def test_a_new_node_has_something_when_more_slices_than_nodes_have_traffic(
    base: Planner, nodes: list[list[int]]
) -> None:
    asked = problem([*nodes, []], (len(nodes),))
    plan = Levelling(base).plan(asked)
    busy = sum(rate > 0 for slices in nodes for rate in slices)
    if busy > len(nodes):
        assert Loads(asked.workload, plan.assignment).total[-1] > 0


@given(nodes=nodes, new=st.booleans())
def test_it_ends_also_if_it_is_asked_again_and_again(nodes: list[list[int]], new: bool) -> None:
    asked, made = problem([*nodes, []], (len(nodes),) if new else ()), Levelling(planner("migrate"))
    before = falling(asked, asked.assignment)
    for _ in range(100):
        plan = made.plan(asked)
        after = falling(asked, plan.assignment)
        if not len(plan.moves):
            return
        assert after < before
        asked, before = asked.starting_at(plan.assignment), after
    raise AssertionError("it still moves slices after 100 plans")


@given(nodes=st.lists(st.lists(rates, max_size=6), min_size=1, max_size=4), cpu=st.sampled_from([0.05, 0.6, 0.95]))
def test_a_node_that_joins_has_something_after_a_round_however_busy_all_are(nodes: list[list[int]], cpu: float) -> None:
    names = "abcdef"[: len(nodes)]
    scene = Scene(None, **dict.fromkeys(names, 1.0), new=1.0)
    for name, slices in zip(names, nodes, strict=True):
        scene.give(name, *slices)
        member = scene.registry.get(name)
        assert member
        member.joining = False
    scene.told(100.0, **dict.fromkeys(names, cpu), new=0.0)
    loads = scene.loads(scene.plan())
    if sum(rate > 0 for slices in nodes for rate in slices) > len(nodes):
        assert loads["new"] > 0


def test_a_node_beside_a_hot_slice_is_new_until_there_is_no_more_for_it() -> None:
    scene = Scene(a=1, b=1, c=1)
    scene.give("a", 9000)
    scene.give("b", *[1000] * 4)
    scene.told(100.0)
    assert scene.loads(scene.plan()) == {"a": 9000, "b": 2000, "c": 2000}
    scene.told(200.0)
    assert scene.plan(200.0) == []
    scene.told(215.0)
    assert scene.plan(215.0) == []
    assert [member.joining for member in scene.registry] == [False] * 3


def test_what_moved_to_a_new_node_does_not_come_back() -> None:
    scene = Scene(a=1, b=1, c=1)
    scene.give("a", 9000, 10, 20, 30)
    scene.give("b", 500, 400, 300)
    now, seen = 100.0, [scene.loads([])]
    for _ in range(20):
        scene.told(now)
        loads = scene.loads(scene.plan(now))
        if loads != seen[-1]:
            seen.append(loads)
        now += 70.0
    vectors = [sorted(entry.values(), reverse=True) for entry in seen]
    assert vectors == sorted(vectors, reverse=True)
    assert min(seen[-1].values()) > 0


MUTANTS = {
    "the planner is asked once": ("is_done", lambda self, even: True),
    "whatever the planner proposes is taken": (
        "take",
        lambda self, assignment: setattr(self, "assignment", assignment),
    ),
    "new nodes that have nothing are not filled": ("fill_empty", lambda self: None),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_levelling_with_a_mistake_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(f"tocsin.slices.levelling._Work.{attribute}", mutant)
    with pytest.raises(AssertionError):
        check_examples()


def check_examples() -> None:
    """What must hold, on examples of each kind."""
    beside = problem([[9000], [1000] * 4, []], (2,))
    assert falling(beside, Levelling(planner("migrate")).plan(beside).assignment) == [9000, 2000, 2000]
    tiny = problem([[9000, 1, 1], []], (1,))
    assert Loads(tiny.workload, Levelling(Chaotic()).plan(tiny).assignment).total[1] > 0
    even = problem([[1000], [1000], [1000]])
    assert falling(even, Levelling(Chaotic()).plan(even).assignment) == [1000] * 3


def test_levelling_without_a_mistake_holds_on_these_examples() -> None:
    check_examples()

"""Cutting a plan: what is left is a plan, within the budget, drains first, and no broker is worse off than now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tocsin.balance.control.budget import cut_to_budget
from tocsin.balance.control.gains import gain_state, gains
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.plan import Plan, PlanStatus, Reason, applicable
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Int32s, Int64s, Workload
from tocsin.balance.planners.conclusion import make_plan

kinds = st.builds(
    InstanceKind,
    subscribers=st.integers(1, 40),
    brokers=st.integers(2, 5),
    subscriptions=st.integers(10, 30),
    each=st.sampled_from([(0, 3), (1, 8)]),
    skew=st.sampled_from([0.0, 1.0]),
)


def random_plan(kind: InstanceKind, seed: int, draining: bool = False) -> tuple[Problem, Plan]:
    """A problem, and a plan for it that moves people about at random."""
    rng = np.random.default_rng(seed)
    workload, start = make(kind, seed)
    workload = replace(workload, capacity=rng.choice([1.0, 3.0, 7.0], kind.brokers))
    drained = np.zeros(kind.brokers, np.bool_)
    drained[0] = draining
    problem = Problem(workload, start, MoveRules(draining=drained))
    wanted = np.where(rng.random(len(start)) < 0.3, start, rng.integers(0, kind.brokers, len(start)))
    wanted = np.where(drained[wanted], 1, wanted).astype(np.int32)
    return problem, make_plan(problem, "random", PlanStatus.BALANCED, wanted, Reason.OVERLOAD)


def assert_part(problem: Problem, whole: Plan, part: Plan) -> None:
    """A part of a plan is a plan: some of its moves, and what comes of these."""
    rows = {int(subscriber): row for row, subscriber in enumerate(whole.moves.subscriber)}
    for row, subscriber in enumerate(part.moves.subscriber):
        of_whole = rows[int(subscriber)]
        assert part.moves.source[row] == whole.moves.source[of_whole] == problem.assignment[subscriber]
        assert part.moves.destination[row] == whole.moves.destination[of_whole] == part.assignment[subscriber]
        assert part.moves.reason[row] == whole.moves.reason[of_whole]
    assert np.count_nonzero(part.assignment != problem.assignment) == len(part.moves)
    assert np.array_equal(part.steps[:, 0], part.moves.subscriber)
    assert applicable(part, problem.assignment)


@settings(max_examples=examples(60))
@given(kind=kinds, seed=st.integers(0, 2**20), most=st.integers(0, 10), least=st.sampled_from([0.0, 800.0]))
def test_a_cut_plan_is_a_plan_that_raises_nothing(kind: InstanceKind, seed: int, most: int, least: float) -> None:
    problem, whole = random_plan(kind, seed)
    part = cut_to_budget(problem, whole, most, least)
    assert_part(problem, whole, part)
    assert len(part.moves) <= most
    assert part is whole or part.after.max <= whole.before.max


@settings(max_examples=examples(60))
@given(kind=kinds, seed=st.integers(0, 2**20), most=st.integers(0, 40))
def test_what_drains_comes_first(kind: InstanceKind, seed: int, most: int) -> None:
    problem, whole = random_plan(kind, seed, draining=True)
    part = cut_to_budget(problem, whole, most, 100.0)
    assert_part(problem, whole, part)
    reasons = [reason is Reason.DRAIN for reason in part.moves.reason]
    assert sum(reasons) == min(most, whole.moves.reason.count(Reason.DRAIN))
    assert reasons == sorted(reasons, reverse=True)


@settings(max_examples=examples(60))
@given(kind=kinds, seed=st.integers(0, 2**20))
def test_every_move_that_stays_gains_what_is_asked(kind: InstanceKind, seed: int) -> None:
    problem, whole = random_plan(kind, seed)
    part = cut_to_budget(problem, whole, min_gain=800.0)
    assume(whole.after.max <= whole.before.max)
    state = gain_state(problem, part.assignment)._replace(fair=gain_state(problem, whole.assignment).fair)
    worth = gains(state, part.moves.subscriber, part.moves.source, np.ones(len(part.moves), np.bool_))
    assert worth.min(initial=np.inf) >= 800.0


def test_a_plan_within_its_budget_stays_as_it_is() -> None:
    problem, whole = random_plan(InstanceKind(20, 3, 10, (1, 3)), seed=1)
    assert cut_to_budget(problem, whole, len(whole.moves)) is whole


def rows(*held: list[int]) -> tuple[Int64s, Int32s]:
    """Rows in compressed form."""
    indptr = np.cumsum([0, *map(len, held)]).astype(np.int64)
    return indptr, np.array([k for row in held for k in row], np.int32)


def test_the_moves_that_gain_most_stay() -> None:
    indptr, idx = rows([0], [1], [2], [3])
    workload = Workload(indptr, idx, np.array([10, 40, 20, 30]), 2)
    problem = Problem(workload, np.zeros(4, np.int32))
    whole = make_plan(problem, "told", PlanStatus.BALANCED, np.array([1, 1, 0, 0], np.int32), Reason.OVERLOAD)
    part = cut_to_budget(problem, whole, 1)
    assert part.moves.subscriber.tolist() == [1]
    assert part.after.loads.tolist() == [120.0, 80.0]
    assert part.status is PlanStatus.CAPPED


def test_a_move_that_the_others_make_superfluous_is_the_first_to_go() -> None:
    indptr, idx = rows([0], [1], [2], [3])
    workload = Workload(indptr, idx, np.array([10, 40, 20, 30]), 2)
    problem = Problem(workload, np.zeros(4, np.int32))
    too_far = make_plan(problem, "told", PlanStatus.BALANCED, np.array([1, 1, 1, 0], np.int32), Reason.OVERLOAD)
    assert cut_to_budget(problem, too_far, min_gain=1.0).after.loads.tolist() == [100.0, 100.0]


def test_a_group_that_moves_together_is_worth_it_together() -> None:
    """Each of the group costs more than it saves as long as the others stay behind."""
    indptr, idx = rows([0], [0], [0], [1], [2])
    workload = Workload(indptr, idx, np.array([100, 150, 150]), 2)
    problem = Problem(workload, np.zeros(5, np.int32))
    whole = make_plan(problem, "told", PlanStatus.BALANCED, np.array([1, 1, 1, 0, 0], np.int32), Reason.SHARING)
    assert cut_to_budget(problem, whole, min_gain=50.0).moves.subscriber.tolist() == [0, 1, 2]

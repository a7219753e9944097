"""What LDM and SDM have in common, and both against their plain references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.balance.examples import example, mask
from tests.balance.reference import Migration as Reference
from tests.balance.reference import ruled, small
from tests.examples import examples
from tocsin.balance.bounds import lower_bound
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.plan import Plan, PlanStatus, Reason
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.planners.dynamic import DynamicMigration
from tocsin.balance.planners.ldm import LDM
from tocsin.balance.planners.sdm import SDM
from tocsin.errors import InvalidError

SEEDS = st.integers(0, 2**32 - 1)
both = pytest.mark.parametrize("policy", [LDM, SDM])
hundreds = hypothesis_settings(max_examples=examples(300))


def _told(plan: Plan) -> tuple[str, list[tuple[int, int, int]]]:
    return str(plan.status), [(int(i), int(source), int(broker)) for i, source, broker in plan.steps]


@both
@hundreds
@given(seed=SEEDS, capacities=st.booleans(), alpha=st.sampled_from([0.0, 0.05, 0.15, 0.5]))
def test_every_move_is_the_references(
    policy: type[DynamicMigration], seed: int, capacities: bool, alpha: float
) -> None:
    problem = small(seed, capacities=capacities)
    assert _told(policy(alpha).plan(problem)) == Reference(policy.similar, alpha).run(problem)


@both
@hundreds
@given(seed=SEEDS, capacities=st.booleans())
def test_every_move_is_the_references_under_rules(policy: type[DynamicMigration], seed: int, capacities: bool) -> None:
    problem = ruled(small(seed, capacities=capacities), seed)
    assert _told(policy(0.05).plan(problem)) == Reference(policy.similar, 0.05).run(problem)


@both
@hypothesis_settings(max_examples=examples(100))
@given(seed=SEEDS, capacities=st.booleans(), beta=st.sampled_from([0.0, 20.0, 1000.0]))
def test_every_move_is_the_references_by_the_papers_literal_rule(
    policy: type[DynamicMigration], seed: int, capacities: bool, beta: float
) -> None:
    problem = small(seed, capacities=capacities)
    plan = policy(beta=beta, strict=False, max_steps=40).plan(problem)
    assert _told(plan) == Reference(policy.similar, beta=beta, strict=False, max_steps=40).run(problem)


@both
@pytest.mark.parametrize("communities", [0, 6])
def test_every_move_is_the_references_when_brokers_have_many_subscribers(
    policy: type[DynamicMigration], communities: int
) -> None:
    workload, now = make(InstanceKind(300, 4, 150, (1, 5), popularity=0.8, communities=communities, skew=1.0), seed=5)
    problem = Problem(workload, now)
    assert _told(policy(0.3).plan(problem)) == Reference(policy.similar, 0.3).run(problem)


@both
@given(seed=SEEDS, strict=st.booleans())
def test_the_highest_load_never_rises_not_even_on_the_way(
    policy: type[DynamicMigration], seed: int, strict: bool
) -> None:
    problem = small(seed, capacities=True)
    loads = Loads(problem.workload, problem.assignment)
    highest = loads.utilisation.max()
    for i, source, broker in policy(0.0, strict=strict, max_steps=60).plan(problem).steps:
        assert loads.assignment[i] == source
        loads.move(i, broker)
        assert loads.utilisation.max() <= highest
        highest = loads.utilisation.max()


@both
@given(seed=SEEDS)
def test_a_strict_plan_always_ends_by_itself(policy: type[DynamicMigration], seed: int) -> None:
    plan = policy(0.0).plan(small(seed))
    assert plan.status is not PlanStatus.CAPPED
    assert (plan.status is PlanStatus.STUCK) == (plan.after.cov > 1e-12)


@both
@given(seed=SEEDS)
def test_steps_lead_to_the_assignment_and_its_figures(policy: type[DynamicMigration], seed: int) -> None:
    problem = ruled(small(seed, capacities=True), seed)
    plan = policy(0.05).plan(problem)
    loads = Loads(problem.workload, problem.assignment)
    for i, _, broker in plan.steps:
        loads.move(i, broker)
    assert (loads.assignment == plan.assignment).all()
    assert (loads.incoming == plan.after.incoming).all()
    assert (loads.outgoing == plan.after.outgoing).all()
    assert (plan.after.loads == loads.utilisation).all()


@both
@given(seed=SEEDS)
def test_rules_hold(policy: type[DynamicMigration], seed: int) -> None:
    problem = ruled(small(seed), seed)
    plan, rules, brokers = policy(0.0).plan(problem), problem.rules, problem.workload.brokers
    home, moves = problem.assignment, plan.moves
    drained = rules.must_empty(brokers)
    assert problem.max_moves is None or len(moves) <= problem.max_moves
    assert rules.sources(brokers)[moves.source].all()
    assert rules.refuges(brokers)[moves.destination].all()
    assert (drained[moves.source] | rules.destinations(brokers)[moves.destination]).all()
    if rules.fixed is not None:
        assert (drained[moves.source] | ~rules.fixed[moves.subscriber]).all()
    if problem.max_moves is None or problem.max_moves >= np.count_nonzero(drained[home]):
        assert not drained[plan.assignment].any()


@both
@given(seed=SEEDS, budget=st.integers(0, 8))
def test_a_budget_ends_the_plan_earlier_and_changes_nothing_else(
    policy: type[DynamicMigration], seed: int, budget: int
) -> None:
    problem = small(seed)
    whole, part = policy(0.0).plan(problem), policy(0.0).plan(replace(problem, max_moves=budget))
    assert len(part.moves) <= budget
    assert (part.steps == whole.steps[: len(part.steps)]).all()
    assert part.status is (whole.status if len(part.steps) == len(whole.steps) else PlanStatus.CAPPED)


@both
@given(seed=SEEDS, target=st.sampled_from([1.0, 1.2, 1.6]))
def test_a_target_ends_the_plan_at_the_first_step_that_reaches_it(
    policy: type[DynamicMigration], seed: int, target: float
) -> None:
    problem = replace(small(seed), target=target)
    ceiling = target * lower_bound(problem)
    plan, whole = policy(0.0).plan(problem), policy(0.0).plan(replace(problem, target=None))
    assert (plan.steps == whole.steps[: len(plan.steps)]).all()
    if len(plan.steps) < len(whole.steps):
        assert plan.after.max <= ceiling
        assert plan.status is (PlanStatus.BALANCED if len(plan.steps) else PlanStatus.IDLE)


@both
def test_one_subscriber_between_two_empty_brokers_stays_where_it_is(policy: type[DynamicMigration]) -> None:
    plan = policy().plan(example([[0]], [10], 2, [0]))
    assert plan.status is PlanStatus.STUCK
    assert len(plan.steps) == 0


@both
def test_by_the_papers_literal_rule_it_goes_back_and_forth_until_the_cap(policy: type[DynamicMigration]) -> None:
    plan = policy(strict=False, max_steps=7).plan(example([[0]], [10], 2, [0]))
    assert plan.status is PlanStatus.CAPPED
    assert plan.steps.tolist() == [[0, 0, 1], [0, 1, 0]] * 3 + [[0, 0, 1]]


@both
def test_the_literal_rule_has_a_cap_if_none_is_given(policy: type[DynamicMigration]) -> None:
    plan = policy(strict=False).plan(example([[0]], [10], 2, [0]))
    assert (plan.status, len(plan.steps), len(plan.moves)) == (PlanStatus.CAPPED, 10, 0)


@both
def test_one_giant_leaves_the_policy_stuck_above_alpha(policy: type[DynamicMigration]) -> None:
    plan = policy().plan(example([[0], [1], [2]], [1000, 1, 1], 3, [0, 0, 0]))
    assert plan.status is PlanStatus.STUCK
    assert plan.after.cov > 0.15
    assert plan.assignment[0] not in plan.assignment[1:]


@both
def test_identical_subscribers_are_split_evenly(policy: type[DynamicMigration]) -> None:
    plan = policy(0.0).plan(example([[0, 1]] * 12, [3, 4], 3, [0] * 12))
    assert plan.status is PlanStatus.BALANCED
    assert np.bincount(plan.assignment).tolist() == [4, 4, 4]


@both
@pytest.mark.parametrize(
    ("rows", "rates", "brokers"),
    [
        ([[0, 1], [1]], [5, 6], 1),
        ([[], [], []], [], 2),
        ([[0, 1], [0]], [0, 0], 2),
        ([], [5], 3),
    ],
    ids=["one broker", "no subscriptions", "all rates zero", "nobody"],
)
def test_there_is_nothing_to_do(
    policy: type[DynamicMigration], rows: list[list[int]], rates: list[int], brokers: int
) -> None:
    plan = policy(0.0).plan(example(rows, rates, brokers, [0] * len(rows)))
    assert plan.status is PlanStatus.IDLE
    assert len(plan.steps) == 0


@both
def test_below_beta_nothing_moves(policy: type[DynamicMigration]) -> None:
    problem = example([[0]] * 4, [10], 2, [0] * 4)
    assert policy(beta=25).plan(problem).status is PlanStatus.IDLE
    assert policy(beta=24).plan(problem).status is PlanStatus.BALANCED


@both
def test_beta_is_in_bytes_also_where_brokers_have_capacities(policy: type[DynamicMigration]) -> None:
    problem = example([[0]] * 4, [10], 2, [0] * 4, capacity=[1e9, 1e9])
    assert policy(beta=25).plan(problem).status is PlanStatus.IDLE
    assert policy(beta=24).plan(problem).status is PlanStatus.BALANCED


@both
def test_a_draining_broker_is_emptied_even_if_all_is_balanced(policy: type[DynamicMigration]) -> None:
    rules = MoveRules(draining=mask(0, 0, 1), fixed=mask(0, 0, 1))
    plan = policy().plan(example([[0], [0], [0]], [10], 3, [0, 1, 2], rules=rules))
    assert plan.steps.tolist() == [[2, 2, 0]]
    assert plan.moves.reason == [Reason.DRAIN]


@both
def test_a_budget_too_small_to_drain_takes_the_heaviest_first(policy: type[DynamicMigration]) -> None:
    problem = example([[0], [1], [2]], [10, 30, 20], 2, [1, 1, 1], rules=MoveRules(draining=mask(0, 1)), max_moves=2)
    plan = policy().plan(problem)
    assert plan.status is PlanStatus.CAPPED
    assert plan.moves.subscriber.tolist() == [1, 2]


@both
def test_whoever_is_nowhere_is_placed_first(policy: type[DynamicMigration]) -> None:
    plan = policy(0.0).plan(example([[0]] * 4, [10], 2, [-1] * 4))
    assert plan.steps.tolist() == [[0, -1, 0], [1, -1, 1], [2, -1, 0], [3, -1, 1]]


@both
def test_everything_pinned_is_stuck(policy: type[DynamicMigration]) -> None:
    plan = policy().plan(example([[0]] * 4, [10], 2, [0] * 4, rules=MoveRules(pinned=mask(1, 1))))
    assert plan.status is PlanStatus.STUCK


@both
@pytest.mark.parametrize("settings", [{"alpha": -0.1}, {"beta": float("nan")}, {"max_steps": -1}])
def test_settings_that_make_no_sense_are_refused(policy: type[DynamicMigration], settings: dict[str, float]) -> None:
    with pytest.raises(InvalidError, match=next(iter(settings))):
        policy(**settings)  # type: ignore[arg-type]

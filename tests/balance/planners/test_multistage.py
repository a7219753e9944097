"""Algorithm 1 as a whole: which stage runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.balance.examples import example, mask
from tests.balance.reference import small
from tocsin.balance.model.plan import Plan, PlanStatus, Reason
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.planners.gsh import GSH
from tocsin.balance.planners.ldm import LDM
from tocsin.balance.planners.multistage import Multistage
from tocsin.balance.planners.planner import Planner
from tocsin.balance.planners.sdm import SDM
from tocsin.errors import InvalidError


@dataclass(frozen=True)
class Recorded:
    """A planner that notes when it is asked."""

    of: Planner
    asked: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.of.name

    def plan(self, problem: Problem) -> Plan:
        self.asked.append(self.name)
        return self.of.plan(problem)


EXTREME = example([[0]] * 12, [10], 3, [0] * 12)
MODERATE = example([[0]] * 12, [10], 3, [0] * 6 + [1] * 3 + [2] * 3)
EVEN = example([[0]] * 12, [10], 3, [0, 1, 2] * 4)


def test_extreme_imbalance_is_shuffled() -> None:
    plan = Multistage().plan(EXTREME)
    assert plan.planner == "multistage"
    assert set(plan.moves.reason) == {Reason.SHUFFLE}
    assert (plan.assignment == GSH().plan(EXTREME).assignment).all()


def test_moderate_imbalance_is_migrated_down_to_alpha() -> None:
    plan = Multistage(alpha=0.1).plan(MODERATE)
    assert set(plan.moves.reason) == {Reason.OVERLOAD}
    assert (plan.steps == LDM(0.1).plan(MODERATE).steps).all()


def test_a_balanced_system_is_left_alone() -> None:
    plan = Multistage().plan(EVEN)
    assert (plan.planner, plan.status, len(plan.moves)) == ("multistage", PlanStatus.IDLE, 0)


@given(seed=st.integers(0, 2**32 - 1))
def test_a_shuffle_and_a_migration_never_run_in_the_same_round(seed: int) -> None:
    asked: list[str] = []
    Multistage(shuffle=Recorded(GSH(), asked), migration=Recorded(SDM(), asked)).plan(small(seed))
    assert len(asked) <= 1


def test_below_theta_even_extreme_imbalance_is_only_migrated() -> None:
    plan = Multistage(theta=1e6).plan(EXTREME)
    assert set(plan.moves.reason) == {Reason.OVERLOAD}


def test_below_beta_and_theta_nothing_happens() -> None:
    assert Multistage(beta=1e6, theta=1e6).plan(EXTREME).status is PlanStatus.IDLE


def test_both_stages_can_be_other_planners() -> None:
    asked: list[str] = []
    policy = Multistage(shuffle=Recorded(GSH(), asked), migration=Recorded(SDM(), asked))
    policy.plan(EXTREME)
    policy.plan(MODERATE)
    assert asked == ["gsh", "sdm"]


def test_a_draining_broker_is_emptied_though_the_others_are_balanced() -> None:
    problem = example([[0]] * 9, [10], 3, [0, 1, 2] * 3, rules=MoveRules(draining=mask(0, 0, 1)))
    plan = Multistage().plan(problem)
    assert not np.any(plan.assignment == 2)
    assert plan.status is PlanStatus.BALANCED


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma", "theta"])
def test_a_threshold_below_zero_is_refused(name: str) -> None:
    with pytest.raises(InvalidError, match=name):
        Multistage(**{name: -1.0})  # type: ignore[arg-type]

"""Algorithm 1 as a whole: shuffle when the imbalance is extreme, migrate when it is moderate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.model.loads import Loads, cov, mean
from tocsin.balance.model.plan import Plan, PlanStatus, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.planners.gsh import GSH
from tocsin.balance.planners.ldm import LDM
from tocsin.balance.planners.planner import Planner
from tocsin.errors import InvalidError


@dataclass(frozen=True)
class Multistage:
    """One round of the paper's balancing.

    If cov > ``gamma`` and μ > ``theta``, everybody is shuffled; otherwise, if cov > ``alpha`` and μ > ``beta``, some
    are migrated; otherwise nothing happens. Never both in a round: cov > γ fulfils both conditions, and what a shuffle
    leaves to be migrated is seen by the next round. Whoever must move (off a draining broker) is migrated in any case.
    μ and cov are those of the brokers that do not drain.

    The plan bears this planner's name; the reasons of its moves tell which stage it was.

    Args:
        theta: bytes per second of a broker on average, as is ``beta``.
        shuffle: the planner of the third stage.
        migration: the planner of the second; None: LDM, with ``alpha`` and ``beta``.
    """

    alpha: float = Thresholds.product().alpha
    beta: float = Thresholds.product().beta
    gamma: float = Thresholds.product().gamma
    theta: float = Thresholds.product().theta
    shuffle: Planner = field(default_factory=GSH)
    migration: Planner | None = None

    name: ClassVar[str] = "multistage"

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "gamma", "theta"):
            if not getattr(self, name) >= 0:
                raise InvalidError(f"{name} is {getattr(self, name)}; it must not be below 0")

    def plan(self, problem: Problem) -> Plan:
        """The plan of the stage that the loads call for."""
        stage = self._stage(problem)
        if stage is None:
            return make_plan(problem, self.name, PlanStatus.IDLE, problem.assignment.copy(), Reason.OVERLOAD)
        return replace(stage.plan(problem), planner=self.name)

    def _stage(self, problem: Problem) -> Planner | None:
        loads = Loads(problem.workload, problem.assignment)
        drained = problem.rules.must_empty(problem.workload.brokers)
        imbalance, average = cov(loads.utilisation[~drained]), mean(loads.total[~drained])
        if imbalance > self.gamma and average > self.theta:
            return self.shuffle
        must = (problem.assignment < 0) | drained[problem.assignment]
        if np.any(must) or (imbalance > self.alpha and average > self.beta):
            return self.migration or LDM(self.alpha, self.beta)
        return None

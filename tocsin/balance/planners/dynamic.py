"""Dynamic migration, lines 5 to 25 of Algorithm 1: one subscriber after another leaves the most loaded broker.

LDM and SDM are this loop with two ways to choose who goes where. What must be comes first: the subscribers of draining
brokers, and those that are nowhere yet (on broker −1), go, heaviest first, to the least loaded or the most similar
broker, whatever its load is afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tocsin.balance.bounds import lower_bound
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.plan import LoadFigures, Plan, PlanStatus, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.planners.candidates import MigrationState
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.planners.masks import masks
from tocsin.balance.planners.ranks import build_towers, level_starts, rank_by_load
from tocsin.balance.planners.stepping import BALANCED, CAPPED, STUCK, MigrationLimits, run_migration
from tocsin.errors import InvalidError

_STEPS_EACH = 10
_ENDLESS = int(np.iinfo(np.int64).max)
_STATUSES = {BALANCED: PlanStatus.BALANCED, STUCK: PlanStatus.STUCK, CAPPED: PlanStatus.CAPPED}


@dataclass(frozen=True)
class DynamicMigration:
    """What LDM and SDM have in common.

    It goes on while cov > ``alpha`` and μ > ``beta``, and, if the problem has a target, while the highest load is above
    that. μ and cov are those of the brokers that do not drain. Each step takes the first valid subscriber of the most
    loaded broker that subscribers may leave; if none is valid, the plan is stuck, though more might be possible for
    others. A budget of moves ends the plan before the first step that would bring more subscribers than that away from
    where they are now; a subscriber that moves twice counts once.

    Args:
        beta: bytes per second of a broker on average, also where brokers have capacities and loads are utilisations.
        strict: a destination's load after a move must be below its source's before it. False: the paper's words, it
            must not exceed it; then a subscriber may go back and forth between two brokers until ``max_steps``.
        max_steps: single moves in a plan. None: as many as it takes if ``strict``, since then every step lowers the
            loads in descending order (or takes one without any load from the broker, and none comes back), and there
            are only so many assignments; else ten per subscriber.
    """

    alpha: float = Thresholds.product().alpha
    beta: float = Thresholds.product().beta
    strict: bool = True
    max_steps: int | None = None

    name: ClassVar[str]
    similar: ClassVar[bool]
    reason: ClassVar[Reason]

    def __post_init__(self) -> None:
        if not (self.alpha >= 0 and self.beta >= 0):
            raise InvalidError(f"alpha is {self.alpha} and beta is {self.beta}; neither may be below 0")
        if self.max_steps is not None and self.max_steps < 0:
            raise InvalidError(f"max_steps is {self.max_steps}; it must not be below 0")

    def plan(self, problem: Problem) -> Plan:
        """The moves of the policy, one by one, until the brokers are balanced or it knows no further."""
        loads = Loads(problem.workload, problem.assignment)
        before = loads.copy()
        code, steps = run_migration(_state(problem, loads), problem.assignment, masks(problem), self._limits(problem))
        status = PlanStatus.IDLE if code == BALANCED and not len(steps) else _STATUSES[code]
        figures = LoadFigures.of(before), LoadFigures.of(loads)
        return make_plan(problem, self.name, status, loads.assignment, self.reason, steps, figures, before)

    def _limits(self, problem: Problem) -> MigrationLimits:
        subscribers = problem.workload.subscribers
        return MigrationLimits(
            alpha=float(self.alpha),
            beta=float(self.beta),
            ceiling=-1.0 if problem.target is None else problem.target * lower_bound(problem),
            strict=self.strict,
            similar=self.similar,
            max_steps=self._max_steps(subscribers),
            max_moves=subscribers if problem.max_moves is None else problem.max_moves,
        )

    def _max_steps(self, subscribers: int) -> int:
        if self.max_steps is not None:
            return self.max_steps
        return _ENDLESS if self.strict else _STEPS_EACH * subscribers


def _state(problem: Problem, loads: Loads) -> MigrationState:
    workload, fixed = problem.workload, problem.rules.fixed
    order, starts = rank_by_load(workload.own), level_starts(workload.subscribers)
    movable = np.ones(workload.subscribers, np.bool_) if fixed is None else ~fixed
    return MigrationState(
        indptr=workload.indptr,
        idx=workload.idx,
        rates=workload.rates,
        weights=workload.weights,
        assignment=loads.assignment,
        held=loads.held,
        incoming=loads.incoming,
        outgoing=loads.outgoing,
        loads=loads.utilisation,
        holders=np.count_nonzero(loads.held, axis=1),
        order=order,
        heaviness=workload.own[order],
        movable=movable,
        towers=build_towers(starts, order, loads.assignment, movable, workload.brokers),
        starts=starts,
    )

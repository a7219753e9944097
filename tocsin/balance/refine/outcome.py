"""How a refinement becomes a plan."""

from __future__ import annotations

import numpy as np

from tocsin.balance.model.plan import LoadFigures, Plan, PlanStatus, Reason
from tocsin.balance.model.workload import Floats, Int32s, Workload
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.refine.refinement import Refinement


def outcome(work: Refinement, planner: str, reason: Reason, goal: float) -> Plan:
    """The plan that leads where the refinement stands; ``goal`` is the highest load asked for, 0 for any."""
    problem, state = work.problem, work.state
    before = figures(problem.workload, work.freedom.home, work.before)
    after = figures(problem.workload, state.assignment, state.load)
    return make_plan(problem, planner, _status(work, goal), state.assignment, reason, None, (before, after))


def figures(workload: Workload, assignment: Int32s, load: Floats) -> LoadFigures:
    """The figures of an assignment whose loads are known."""
    placed = assignment >= 0
    outgoing = np.bincount(assignment[placed], workload.own[placed], minlength=workload.brokers)
    return LoadFigures((load - outgoing).astype(np.int64), outgoing.astype(np.int64), load * workload.weights)


def _status(work: Refinement, goal: float) -> PlanStatus:
    moves, budget = len(work.away), work.problem.max_moves
    spent = budget is not None and moves >= max(budget, 1)
    # Without a goal lower is always better, and only the budget can be in the way.
    reached = work.highest <= goal if goal else not spent
    if reached and not len(work.waiting):
        return PlanStatus.BALANCED if moves else PlanStatus.IDLE
    return PlanStatus.CAPPED if spent else PlanStatus.STUCK

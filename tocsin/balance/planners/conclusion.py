"""How every planner ends: its assignment made into a plan, with figures and bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tocsin.balance.bounds import lower_bound, moves_lower_bound
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.plan import LoadFigures, Moves, Plan, PlanStatus, Reason, differences
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Bools, Int32s, Int64s


def make_plan(
    problem: Problem,
    planner: str,
    status: PlanStatus,
    assignment: Int32s,
    reason: Reason | Sequence[Reason],
    steps: Int64s | None = None,
    figures: tuple[LoadFigures, LoadFigures] | None = None,
    before: Loads | None = None,
) -> Plan:
    """The plan that leads to ``assignment``.

    Args:
        reason: one for all moves, or one per subscriber; what leaves a draining broker and what a joining one
            receives is always said to do so.
        steps: the single moves in their order, if the planner made them one by one; else they are the moves.
        figures: before and after, if the planner has them already.
        before: the loads now, if the planner still has them.
    """
    loads = before or Loads(problem.workload, problem.assignment)
    earlier, later = figures or (LoadFigures.of(loads), LoadFigures.of(Loads(problem.workload, assignment)))
    moves = _moves(problem, assignment, reason)
    if steps is None:
        steps = np.stack([moves.subscriber, moves.source, moves.destination], axis=1).astype(np.int64)
    return Plan(
        planner=planner,
        status=status,
        moves=moves,
        assignment=assignment,
        before=earlier,
        after=later,
        steps=steps,
        lower_bound=lower_bound(problem),
        moves_lower_bound=moves_lower_bound(problem, later.max, loads),
    )


def _moves(problem: Problem, assignment: Int32s, reason: Reason | Sequence[Reason]) -> Moves:
    subscriber = differences(problem.assignment, assignment)
    source, destination = problem.assignment[subscriber], assignment[subscriber]
    given = [reason] * len(subscriber) if isinstance(reason, Reason) else [reason[i] for i in subscriber]
    for brokers, ends, why in _always(problem, source, destination):
        for row in np.flatnonzero(brokers[ends] & (ends >= 0)):
            given[row] = why
    return Moves(subscriber, source, destination, given)


def _always(problem: Problem, source: Int32s, destination: Int32s) -> list[tuple[Bools, Int32s, Reason]]:
    """The reasons that hold whatever the planner says, the strongest last."""
    joining, draining = problem.rules.joining, problem.rules.draining
    rules = ((joining, destination, Reason.JOIN), (draining, source, Reason.DRAIN))
    return [(brokers, ends, why) for brokers, ends, why in rules if brokers is not None]

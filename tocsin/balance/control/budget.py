"""A plan cut down to what may be moved at a time, and to the moves that are worth it; it is a plan again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tocsin.balance.control.gains import GainState, gain_state, gains, make_moves_below, undo_below, undo_cheapest
from tocsin.balance.model.plan import Moves, Plan, PlanStatus, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s
from tocsin.balance.planners.conclusion import make_plan


def cut_to_budget(problem: Problem, plan: Plan, max_moves: int | None = None, min_gain: float = 0.0) -> Plan:
    """The best part of a plan for the same problem: at most ``max_moves`` moves, each of which gains ``min_gain``.

    Who leaves a draining broker, or is nowhere yet, comes first and need not gain anything. The others stay by their
    gain (``gains.py`` says what that is). The highest load does not rise above the one now, unless a broker drains. The
    moves of the new plan stand in the order in which they should be made: drains, then by falling gain.

    Args:
        max_moves: None for any number.
        min_gain: bytes per second; 0 keeps whatever the planner found worth it.
    """
    most = len(plan.moves) if max_moves is None else max_moves
    if len(plan.moves) <= most and min_gain <= 0:
        return plan
    drains = _urgent(problem, plan.moves)
    kept = drains.copy()
    if drains.sum() >= most:
        kept[:] = False
        kept[_soonest_empty(plan.moves, drains)[:most]] = True
    else:
        kept |= _worthy(problem, plan, ~drains, most - int(drains.sum()), min_gain)
    status = PlanStatus.CAPPED if len(plan.moves) > most else plan.status
    return _order_moves(problem, _part(problem, plan, kept, status))


def _urgent(problem: Problem, moves: Moves) -> Bools:
    """Which moves are no choice: away from a draining broker, or from nowhere."""
    return np.asarray((moves.source < 0) | problem.rules.must_empty(problem.workload.brokers)[moves.source])


def _soonest_empty(moves: Moves, drains: Bools) -> Int64s:
    """The rows of what drains, with the broker first that has the fewest left."""
    rows = np.flatnonzero(drains)
    left = np.bincount(moves.source[rows] + 1)[moves.source[rows] + 1]
    return rows[np.lexsort((moves.subscriber[rows], moves.source[rows], left))]


def _worthy(problem: Problem, plan: Plan, candidates: Bools, most: int, min_gain: float) -> Bools:
    """Which of the candidates stay, beside all that are none."""
    moves, always = plan.moves, ~candidates
    state, stays = gain_state(problem, plan.assignment), candidates.copy()
    ceiling = _ceiling(problem, plan, always)
    undo_cheapest(state, moves.subscriber, moves.source, stays, most)
    while True:
        if min_gain > 0:
            undo_below(state, moves.subscriber, moves.source, stays, float(min_gain))
        if (_loads(problem, state) <= ceiling).all():
            return stays
        state = _under(problem, moves, stays, always, ceiling)._replace(fair=state.fair)
        stays &= state.assignment[moves.subscriber] == moves.destination


def _under(problem: Problem, moves: Moves, stays: Bools, always: Bools, ceiling: float) -> GainState:
    """The state without those that lift a broker above the ceiling: they counted on others to leave it, who stay."""
    together = gain_state(problem, _with(problem.assignment, moves, stays | always))
    worth = gains(together, moves.subscriber, moves.source, stays)
    order = np.argsort(-np.where(stays, worth, -np.inf), kind="stable")[: int(stays.sum())]
    state = gain_state(problem, _with(problem.assignment, moves, always))
    make_moves_below(state, moves.subscriber, moves.destination, order, problem.workload.weights, ceiling)
    return state


def _ceiling(problem: Problem, plan: Plan, always: Bools) -> float:
    """The highest load now, or once those have moved that move in any case."""
    if not always.any():
        return plan.before.max
    drained = gain_state(problem, _with(problem.assignment, plan.moves, always))
    return max(plan.before.max, float(_loads(problem, drained).max()))


def _loads(problem: Problem, state: GainState) -> Floats:
    return (state.incoming + state.outgoing) * problem.workload.weights


def _with(assignment: Int32s, moves: Moves, which: Bools) -> Int32s:
    after = assignment.copy()
    after[moves.subscriber[which]] = moves.destination[which]
    return after


def _part(problem: Problem, plan: Plan, kept: Bools, status: PlanStatus) -> Plan:
    why: list[Reason] = [Reason.OVERLOAD] * problem.workload.subscribers
    for row in np.flatnonzero(kept):
        why[plan.moves.subscriber[row]] = plan.moves.reason[row]
    return make_plan(problem, plan.planner, status, _with(problem.assignment, plan.moves, kept), why)


def _order_moves(problem: Problem, plan: Plan) -> Plan:
    """The same plan with its moves in the order in which they should be made."""
    moves = plan.moves
    drains = _urgent(problem, moves)
    worth = gains(gain_state(problem, plan.assignment), moves.subscriber, moves.source, ~drains)
    order = np.lexsort((moves.subscriber, -worth, ~drains))
    sorted_ = Moves(
        moves.subscriber[order], moves.source[order], moves.destination[order], [moves.reason[row] for row in order]
    )
    return replace(plan, moves=sorted_, steps=plan.steps[order])

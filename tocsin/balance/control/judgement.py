"""Whether a plan is let through: it keeps to the rules, and it is worth the trouble."""

from __future__ import annotations

import numpy as np

from tocsin.balance.control.observation import among
from tocsin.balance.model.plan import Plan
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Bools


def broken_rule(problem: Problem, plan: Plan) -> str:
    """Which rule of its problem a plan breaks, or nothing. For planners that are not ours, and against bugs in ours."""
    rules, brokers = problem.rules, problem.workload.brokers
    moves = plan.moves
    if not np.array_equal(problem.assignment[moves.subscriber], moves.source):
        return "it moves subscribers from brokers where they are not"
    drains = rules.must_empty(brokers)[moves.source]
    if not rules.sources(brokers)[moves.source].all():
        return "it moves subscribers away from a pinned broker"
    if rules.fixed is not None and (rules.fixed[moves.subscriber] & ~drains).any():
        return "it moves subscribers that must stay where they are"
    allowed = np.where(
        drains, rules.refuges(brokers)[moves.destination], rules.destinations(brokers)[moves.destination]
    )
    if not allowed.all():
        return f"it moves subscribers to broker row {moves.destination[~allowed][0]}, which may not receive them"
    return ""


def why_pointless(plan: Plan, brokers: Bools, min_improvement: float, joining: Bools | None = None) -> str:
    """Why a plan is not worth carrying out, by the loads of the brokers that take part, or nothing.

    The highest load may not rise, and it or cov must fall by a part of itself. So no sequence of plans goes round in
    circles: the highest load falls by that part only so often before it meets its lower bound, and in between cov
    falls by that part only so often before it is below α. Where a broker that is ``joining`` and has no load gets
    some, it is enough that the loads in descending order are lower than before, which also happens only so often.
    """
    before, after = among(plan.before, brokers), among(plan.after, brokers)
    if not len(plan.moves):
        return f"it moves nobody ({plan.status})"
    if after.max > before.max:
        return f"the highest load would rise by {after.max / before.max - 1 if before.max else 1:.1%}"
    if joining is not None and (joining & (plan.before.loads == 0) & (plan.after.loads > 0)).any():
        lower = np.sort(after.loads)[::-1].tolist() < np.sort(before.loads)[::-1].tolist()
        return "" if lower else "a new broker would get something, but no load be lower for it"
    less = 1 - min_improvement
    if after.max > before.max * less and after.cov > before.cov * less:
        return (
            f"it would move {len(plan.moves):,} and lower the highest load only by {1 - after.max / before.max:.1%} "
            f"and cov from {before.cov:.3f} to {after.cov:.3f}; {min_improvement:.0%} of one of them is asked for"
        )
    return ""

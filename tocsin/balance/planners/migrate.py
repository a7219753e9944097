"""Tocsin's migration: the highest load that is asked for, with as few moved subscribers as can be found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tocsin.balance.model.plan import Plan, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.refine.budget import shed_within
from tocsin.balance.refine.outcome import outcome
from tocsin.balance.refine.price import Descent
from tocsin.balance.refine.refinement import Refinement
from tocsin.balance.refine.renewal import Renewal


@dataclass(frozen=True)
class Migrate:
    """Moves few: sheds what must be shed, then lets others move for what it saves, at a falling price.

    First the heaviest subscribers leave overloaded brokers, each to the broker that has least to fetch for it
    (``refine.shedding``); where that reaches what is enough, or the target, that is all, and about as few as any plan
    can do with. Else best responses on the smoothed potential follow (``refine.potential``), in which being away from
    home costs a price: those who are away already rearrange freely, others leave only where that saves more than the
    price. Smoothing makes groups with shared BE subscriptions follow one another, each member lowering the others'
    cost. The price falls until that load is met or the budget is used up; without a target it ends at ``price``, where
    a further move would save too little.

    A target that even this does not reach is tried by placing everybody anew, as ``Shuffle`` does, unless there is a
    budget.

    Args:
        price: without a target, what a move must save in total load, in multiples of the mean own load.
        descent: how the price falls.
        renewal: how everybody is placed anew, if nothing else reaches the target.
    """

    price: float = 0.35
    descent: Descent = field(default_factory=Descent)
    renewal: Renewal = field(default_factory=Renewal)

    name: ClassVar[str] = "migrate"

    def plan(self, problem: Problem) -> Plan:
        """The lowest highest load that is worth its moves, or the target."""
        work = Refinement(problem)
        goal = work.goal
        if len(work.freedom.free) and (len(work.waiting) or work.highest > goal):
            self._improve(work, goal)
        return outcome(work, self.name, Reason.OVERLOAD, goal)

    def _improve(self, work: Refinement, goal: float) -> None:
        budget = work.problem.max_moves
        left = len(work.freedom.home) if budget is None else budget
        left -= work.evict(left)
        if len(work.waiting):
            return
        shed_within(work, goal, left)
        if goal and work.highest <= goal:
            work.bring_back(goal)
            return
        at_any_price = work.problem.target is not None
        self.descent.apply(work, goal, self.price if not at_any_price and budget is None else 0.0)
        if at_any_price and work.highest > goal and budget is None:
            self._renew(work, goal)

    def _renew(self, work: Refinement, goal: float) -> None:
        before = work.state
        lowest = work.highest
        self.renewal.apply(work)
        if work.highest >= lowest:
            work.state = before
        work.bring_back(goal)

"""Tocsin's shuffle: the lowest highest load that can be found in the time, however many subscribers move."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from tocsin.balance.model.plan import Plan, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.planners.migrate import Migrate
from tocsin.balance.refine.outcome import outcome
from tocsin.balance.refine.refinement import Refinement
from tocsin.balance.refine.renewal import Renewal


@dataclass(frozen=True)
class Shuffle:
    """Places everybody anew: peel, best responses, even out, polish, relabel.

    Brokers are first filled with the closest groups that can be peeled out of all subscribers (``refine.peeling``).
    Best responses on a smoothed potential then pull holders of the same BE subscriptions together
    (``refine.potential``); so whole groups move, each member making the next one's move cheaper. A steeper and steeper
    penalty on load evens the brokers out, and sampled moves and swaps cool the hottest one (``refine.polish``). At last
    each group is given to the broker where most of its members are already, among brokers of equal capacity.

    With a load that is enough, or a target, nothing is shuffled that meets it already, and afterwards whoever can go
    back home without any load rising above it does so. With a budget of moves the answer is that of ``Migrate``: few
    moves need another way.

    Args:
        renewal: how everybody is placed anew.
    """

    renewal: Renewal = field(default_factory=Renewal)

    name: ClassVar[str] = "shuffle"

    def plan(self, problem: Problem) -> Plan:
        """The best that was found, or nothing if it is none the better."""
        if problem.max_moves is not None:
            return replace(Migrate().plan(problem), planner=self.name)
        work = Refinement(problem)
        goal = work.goal
        if len(work.freedom.free) and (len(work.waiting) or work.highest > goal):
            work.evict(len(work.freedom.free))
            self.renewal.apply(work)
            work.bring_back(goal)
        return outcome(work, self.name, Reason.SHUFFLE, goal)

"""Any planner, taught to go on where the highest load cannot be lowered: beside a hot slice there is work to share.

Planners lower the highest load, and are done when that cannot be. A slice that has more than any other node has in all
cannot be divided, so its node stays the highest, and the others would stay as they are. Here that node is set aside,
and the planner asked again about the rest: the highest load falls as far as it can, then the next one, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tocsin.balance.model.loads import Loads, cov
from tocsin.balance.model.plan import Plan, PlanStatus, Reason
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Bools, Floats, Int32s
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.planners.planner import Planner


@dataclass(frozen=True)
class Levelling:
    """Lowers the nodes' loads, the highest first, in as many rounds as there are nodes that cannot be helped.

    The loads in descending order never get worse, whatever the planner proposes: a round of its that would make them so
    is left out. Then a new node that has still got nothing is given the heaviest slice that makes them better, if any
    does; so it has something as soon as some node of its size has two slices for which something comes.

    What drains is the planner's own business. Every slice must be a subscriber that shares nothing.

    Args:
        planner: what plans each round.
        rounds: at most so many; the planner is asked once in each.
        even: without a load that is enough, the rest is left alone when its cov is not above this, or, if there are
            new nodes, when they have this part less than the mean of the rest.
    """

    planner: Planner
    rounds: int = 32
    even: float = 0.15

    @property
    def name(self) -> str:
        """The planner's."""
        return self.planner.name

    def plan(self, problem: Problem) -> Plan:
        """What the planner proposes, round after round, as one plan."""
        if problem.rules.must_empty(problem.workload.brokers).any():
            return self.planner.plan(problem)
        first = self.planner.plan(problem)
        work = _Work(problem)
        work.take(first.assignment)
        for _ in range(self.rounds - 1):
            work.set_aside_highest()
            if work.is_done(self.even):
                break
            work.take(self.planner.plan(work.rest()).assignment)
        work.fill_empty()
        if np.array_equal(work.assignment, first.assignment):
            return first
        return make_plan(problem, self.name, PlanStatus.BALANCED, work.assignment, Reason.OVERLOAD)


class _Work:
    """An assignment on its way, and which nodes are still to be helped."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._brokers = problem, problem.workload.brokers
        self._taking = problem.rules.sources(self._brokers)
        self._open = self._taking.copy()
        self.assignment = problem.assignment
        self._loads = self._loads_of(self.assignment)
        self._mean = self._mean_of(self._open)

    def take(self, assignment: Int32s) -> None:
        """Goes on from an assignment, if it moves no more than it may and makes the loads better."""
        loads = self._loads_of(assignment)
        if self._moves_left(assignment) >= 0 and _falling(loads[self._taking]) < _falling(self._loads[self._taking]):
            self.assignment, self._loads = assignment, loads

    def set_aside_highest(self) -> None:
        """The node with the highest load of the rest is as low as it will be."""
        if self._open.any():
            self._open[np.argmax(np.where(self._open, self._loads, -1.0))] = False

    def is_done(self, even: float) -> bool:
        """Whether the rest is even, or cannot be made so."""
        rest = self._loads[self._open]
        joining = self._open & self._joining
        if len(rest) < 2 or not rest.max() or self._moves_left(self.assignment) == 0:
            return True
        if self._joining.any():
            return not joining.any() or bool(self._loads[joining].min() >= (1 - even) * rest.mean())
        return bool(rest.max() <= enough) if (enough := self._enough()) is not None else cov(rest) <= even

    def rest(self) -> Problem:
        """The question about the nodes that are not set aside."""
        rules = self._problem.rules
        pinned = ~self._open
        return replace(
            self._problem,
            assignment=self.assignment,
            rules=MoveRules(rules.draining, pinned, rules.joining, rules.fixed),
            enough=self._enough(),
            max_moves=None if self._problem.max_moves is None else self._moves_left(self.assignment),
        )

    def fill_empty(self) -> None:
        """Gives new nodes that have nothing the heaviest slice that makes the loads better, from the highest load."""
        for node in np.flatnonzero(self._joining & self._taking & (self._loads == 0)):
            if self._moves_left(self.assignment) < 1:
                return
            for source in np.argsort(-self._loads, kind="stable"):
                if self._taking[source] and self._fill(int(node), int(source)):
                    break

    def _fill(self, node: int, source: int) -> bool:
        own, rules = self._problem.workload.own, self._problem.rules
        movable = (self.assignment == source) & (own > 0)
        if rules.fixed is not None:
            movable &= ~rules.fixed
        before = self.assignment
        for slice_ in sorted(np.flatnonzero(movable), key=lambda each: -own[each]):
            moved = self.assignment.copy()
            moved[slice_] = node
            self.take(moved)
            if self.assignment is not before:
                return True
        return False

    @property
    def _joining(self) -> Bools:
        joining = self._problem.rules.joining
        return np.zeros(self._brokers, np.bool_) if joining is None else joining

    def _enough(self) -> float | None:
        """What was enough for all, in the same proportion to the mean of the rest."""
        enough = self._problem.enough
        return enough if enough is None or not self._mean else enough * self._mean_of(self._open) / self._mean

    def _moves_left(self, assignment: Int32s) -> int:
        """How many moves an assignment leaves of the budget; without one, as many as there are slices."""
        moved = int(np.count_nonzero(assignment != self._problem.assignment))
        most = self._problem.max_moves
        return (len(assignment) + 1 if most is None else most) - moved

    def _loads_of(self, assignment: Int32s) -> Floats:
        return Loads(self._problem.workload, assignment).utilisation

    def _mean_of(self, nodes: Bools) -> float:
        return float(self._loads[nodes].mean()) if nodes.any() else 0.0


def _falling(loads: Floats) -> list[float]:
    return [float(load) for load in np.sort(loads)[::-1]]

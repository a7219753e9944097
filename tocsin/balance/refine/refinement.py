"""One assignment on its way to a better one: the steps of this package over one set of arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tocsin.balance.bounds import lower_bound
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Floats, Int32s, Int64s
from tocsin.balance.refine.freedom import Freedom, changeable, freedom_of
from tocsin.balance.refine.polish import cool
from tocsin.balance.refine.potential import Field, Pressure, field_of, respond, sharpen
from tocsin.balance.refine.shedding import bring_back, evict, shed
from tocsin.balance.refine.state import (
    RefinementState,
    SubscriptionRows,
    copy_state,
    refinement_state,
    subscription_rows,
)

_FIT = 20  # steps to fit a goal, in multiples of the number of brokers


class Refinement:
    """The assignment of a problem, to be changed step by step within the problem's rules."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows: SubscriptionRows = subscription_rows(problem.workload)
        self.freedom: Freedom = freedom_of(problem)
        self.state: RefinementState = refinement_state(problem.workload, problem.assignment)
        self.before: Floats = self.state.load.copy()
        self._changeable = changeable(self.freedom)
        self._field: Field | None = None

    def restart(self, assignment: Int32s) -> None:
        """Goes on from another assignment."""
        self.state = refinement_state(self.problem.workload, assignment)

    def save(self) -> RefinementState:
        """A copy of where it stands."""
        return copy_state(self.state)

    @property
    def highest(self) -> float:
        """The highest load ÷ capacity of a broker that moves can change; 0 if there is none."""
        return float((self.state.load * self.state.weight).max(initial=0.0, where=self._changeable))

    @property
    def goal(self) -> float:
        """At which highest load it may end; 0 if the lower the better."""
        if self.problem.target is not None:
            return self.problem.target * lower_bound(self.problem)
        return self.problem.enough or 0.0

    @property
    def level(self) -> float:
        """The highest load if what there is now were spread by capacity over the brokers that remain."""
        remaining = self._changeable & ~self.problem.rules.must_empty(len(self.state.load))
        room = float((1.0 / self.state.weight[remaining]).sum())
        return float(self.state.load.sum(where=self._changeable)) / room if room else 0.0

    @property
    def away(self) -> Int64s:
        """Who is not at home."""
        return np.flatnonzero(self.state.assignment != self.freedom.home)

    @property
    def waiting(self) -> Int64s:
        """Who must leave home and has not yet."""
        return np.flatnonzero(self.freedom.evicted & (self.state.assignment == self.freedom.home))

    def evict(self, budget: int) -> int:
        """Empties draining brokers; see ``shedding.evict``."""
        return int(evict(self.rows, self.state, self.freedom, budget))

    def shed(self, limit: float, ceiling: float, budget: int) -> int:
        """Brings brokers below a limit; see ``shedding.shed``."""
        return int(shed(self.rows, self.state, self.freedom, limit, ceiling, budget))

    def bring_back(self, limit: float) -> int:
        """Undoes moves that are not needed to stay below a limit; see ``shedding.bring_back``."""
        return int(bring_back(self.rows, self.state, self.freedom, limit))

    def respond(self, sharpness: Iterable[float], pressure: Pressure, order: Int64s | None = None) -> None:
        """A pass of best responses for each p of ``sharpness``; see ``potential.respond``."""
        if self._field is None:
            self._field = field_of(self.state)
        who = self.freedom.free if order is None else order
        for p in sharpness:
            sharpen(self._field, self.state, p)
            respond(self.rows, self.state, self._field, self.freedom, who, pressure)

    def cool(self, steps: int, goal: float, seed: int) -> int:
        """Takes load off the hottest broker; see ``polish.cool``."""
        return int(cool(self.rows, self.state, self.freedom, steps, goal, 2, seed))

    def fit(self, goal: float) -> None:
        """Takes load off the hottest broker until it is at the goal: first without any further move, then with."""
        steps = _FIT * len(self.state.load)
        for leave in (0, 1, 2):
            cool(self.rows, self.state, self.freedom, steps, goal, leave, self.problem.seed)

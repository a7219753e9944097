"""A price on being away from home that falls until enough subscribers have moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin.balance.refine.potential import Pressure
from tocsin.balance.refine.refinement import Refinement
from tocsin.balance.refine.state import RefinementState, copy_state

_EVEN = 1.0005  # how close to the level the highest load is brought


@dataclass(frozen=True)
class Descent:
    """How the price falls. Prices are in multiples of the mean own load.

    Args:
        first: the first price.
        last: the last one.
        ratio: of each price to the one before.
        halvings: how often the price between the one that was too high and the one that reached the goal is tried.
        sharpness: p of the passes of best responses at each price.
        kappa: how strongly load presses in them.
    """

    first: float = 1.0
    last: float = 0.01
    ratio: float = 0.5
    halvings: int = 2
    sharpness: tuple[float, ...] = (0.5, 1.0)
    kappa: float = 20.0

    def apply(self, work: Refinement, goal: float, end: float) -> None:
        """Lowers the price down to ``end``, or until the goal is reached or the problem's budget is used up. Leaves the
        lowest highest load on the way, and with a goal, the fewest moves that were found to reach it."""
        best, lowest = work.save(), work.highest
        price = self.first
        while price >= max(end, self.last):
            before = work.save() if goal else work.state
            after = self._at(work, price)
            self._settle(work, goal)
            if _exceeds(work):
                break
            if goal and work.highest <= goal:
                self._halve(work, goal, price, before)
                return
            if work.highest < lowest:
                best, lowest = work.state, work.highest
            work.state = after
            price *= self.ratio
        work.state = best

    def _at(self, work: Refinement, price: float) -> RefinementState:
        """Best responses at a price; returns a copy of where they lead."""
        unit = float(np.mean(work.rows.own))
        work.respond(self.sharpness, Pressure(self.kappa / max(work.level, 1.0), 0.0, price * unit))
        return work.save()

    def _settle(self, work: Refinement, goal: float) -> None:
        limit = max(goal, work.level * _EVEN)
        work.shed(limit, limit, len(work.rows.own))
        work.bring_back(max(limit, work.highest))

    def _halve(self, work: Refinement, goal: float, price: float, before: RefinementState) -> None:
        """Looks for fewer moves at prices between this one and the one before, which did not reach the goal."""
        best, fewest = work.state, len(work.away)
        low, high = price, price / self.ratio
        for _ in range(self.halvings):
            middle = float(np.sqrt(low * high))
            work.state = copy_state(before)
            self._at(work, middle)
            self._settle(work, goal)
            if work.highest > goal:
                high = middle
                continue
            low = middle
            if len(work.away) < fewest:
                best, fewest = work.state, len(work.away)
        work.state = best


def _exceeds(work: Refinement) -> bool:
    budget = work.problem.max_moves
    return budget is not None and len(work.away) > budget

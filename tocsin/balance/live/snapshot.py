"""A live workload at one moment, as planners see it: dense rows, and which of its numbers they stand for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tocsin.balance.model.plan import Moves, Plan
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Bools, Int32s, Int64s, Workload


@dataclass(frozen=True, eq=False)
class WorkloadSnapshot:
    """A workload and who is where. It shares nothing with the live workload, which may go on changing.

    Args:
        subscribers: the live workload's number of each row of the workload, rising.
        subscriptions: the live workload's number of each BE subscription of the workload, rising.
        brokers: the live workload's number of each broker of the workload, rising.
    """

    workload: Workload
    assignment: Int32s
    subscribers: Int64s
    subscriptions: Int64s
    brokers: Int64s

    def problem(
        self,
        draining: Collection[int] = (),
        pinned: Collection[int] = (),
        joining: Collection[int] = (),
        fixed: npt.ArrayLike = (),
        enough: float | None = None,
        max_moves: int | None = None,
        seed: int = 0,
    ) -> Problem:
        """A question to a planner, with brokers and fixed subscribers by their numbers in the live workload. Numbers
        that are not in the snapshot are passed over: they have left."""
        rules = MoveRules(
            draining=self.mask(draining),
            pinned=self.mask(pinned),
            joining=self.mask(joining),
            fixed=np.isin(self.subscribers, np.asarray(fixed, np.int64)),
        )
        return Problem(self.workload, self.assignment, rules, enough=enough, max_moves=max_moves, seed=seed)

    def mask(self, brokers: Collection[int]) -> Bools:
        """Which of the snapshot's brokers are among these."""
        return np.isin(self.brokers, np.fromiter(brokers, np.int64, len(brokers)))

    def moves(self, plan: Plan) -> Moves:
        """A plan's moves in the live workload's numbers, for :meth:`LiveWorkload.apply`."""
        return Moves(
            self.subscribers[plan.moves.subscriber],
            self.brokers[plan.moves.source].astype(np.int32),
            self.brokers[plan.moves.destination].astype(np.int32),
            plan.moves.reason,
        )

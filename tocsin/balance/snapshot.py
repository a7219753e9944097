"""A Book at one moment, as planners see it: dense rows, and which numbers of the Book they stand for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tocsin.balance.plan import Moves, Plan
from tocsin.balance.problem import Problem, Rules
from tocsin.balance.workload import Bools, Int32s, Int64s, Workload


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A workload and who is where. It shares nothing with the Book, which may go on changing.

    Args:
        subscribers: the Book's number of each row of the workload, rising.
        subscriptions: the Book's number of each BE subscription of the workload, rising.
        brokers: the Book's number of each broker of the workload, rising.
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
        """A question to a planner, with brokers and fixed subscribers by their numbers in the Book. Numbers that are
        not in the snapshot are passed over: they have left."""
        rules = Rules(
            draining=self.marked(draining),
            pinned=self.marked(pinned),
            joining=self.marked(joining),
            fixed=np.isin(self.subscribers, np.asarray(fixed, np.int64)),
        )
        return Problem(self.workload, self.assignment, rules, enough=enough, max_moves=max_moves, seed=seed)

    def marked(self, brokers: Collection[int]) -> Bools:
        """Which of the snapshot's brokers are among these."""
        return np.isin(self.brokers, np.fromiter(brokers, np.int64, len(brokers)))

    def moves(self, plan: Plan) -> Moves:
        """A plan's moves in the numbers of the Book, for :meth:`Book.apply`."""
        return Moves(
            self.subscribers[plan.moves.subscriber],
            self.brokers[plan.moves.source].astype(np.int32),
            self.brokers[plan.moves.destination].astype(np.int32),
            plan.moves.reason,
        )

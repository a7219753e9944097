"""A plan is data: who goes where and why, and what every broker's load is before and after.

So it can be shown to a person, stored, simulated, carried out in part, or refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tocsin.balance.model.loads import Loads, cov, mean
from tocsin.balance.model.workload import Floats, Int32s, Int64s


class PlanStatus(StrEnum):
    """How a planner ended."""

    BALANCED = "balanced"  # the goal it was given is reached
    STUCK = "stuck"  # it is not, and the policy knows no further move
    CAPPED = "capped"  # it is not, and the budget of moves or steps is used up
    IDLE = "idle"  # there was nothing to do


class Reason(StrEnum):
    """Why a subscriber moves."""

    OVERLOAD = "overload"  # its broker is above the others
    SHARING = "sharing"  # the destination holds its subscriptions already
    DRAIN = "drain"  # its broker is being emptied
    JOIN = "join"  # a new broker takes its share
    SHUFFLE = "shuffle"  # everybody is placed anew
    ROOM = "room"  # it makes room for somebody heavier


@dataclass(frozen=True, eq=False)
class LoadFigures:
    """The state of the brokers at one moment. ``loads`` are utilisations where capacities differ."""

    incoming: Int64s
    outgoing: Int64s
    loads: Floats

    @classmethod
    def of(cls, loads: Loads) -> LoadFigures:
        """The figures of an assignment."""
        return cls(loads.incoming.copy(), loads.outgoing.copy(), loads.utilisation)

    @property
    def max(self) -> float:
        """The highest load of a broker."""
        return float(self.loads.max()) if len(self.loads) else 0.0

    @property
    def mean(self) -> float:
        """μ."""
        return mean(self.loads)

    @property
    def cov(self) -> float:
        """σ ÷ μ."""
        return cov(self.loads)

    @property
    def total(self) -> int:
        """Bytes per second that all brokers together handle."""
        return int(self.incoming.sum() + self.outgoing.sum())


@dataclass(frozen=True, eq=False)
class Moves:
    """Who goes from where to where, one row per subscriber that ends elsewhere, and why."""

    subscriber: Int64s
    source: Int32s
    destination: Int32s
    reason: list[Reason]

    def __len__(self) -> int:
        return len(self.subscriber)


@dataclass(frozen=True, eq=False)
class Plan:
    """What a planner proposes. It changes nothing by itself.

    Args:
        planner: the name of the policy.
        assignment: the broker of each subscriber afterwards.
        steps: every single move in the order in which the policy made it, as rows of subscriber, source and
            destination; a policy may move a subscriber more than once.
        lower_bound: no assignment whatever has a lower highest load.
        moves_lower_bound: no plan that brings the highest load to this plan's moves fewer subscribers.
    """

    planner: str
    status: PlanStatus
    moves: Moves
    assignment: Int32s
    before: LoadFigures
    after: LoadFigures
    steps: Int64s
    lower_bound: float
    moves_lower_bound: int

    @property
    def ratio(self) -> float:
        """The highest load afterwards over the lower bound; 1 is perfect."""
        return self.after.max / self.lower_bound if self.lower_bound else 1.0


def differences(before: Int32s, after: Int32s) -> Int64s:
    """The subscribers that are elsewhere afterwards."""
    return np.flatnonzero(before != after)


def overtaken_moves(plan: Plan, assignment: Int32s) -> Int64s:
    """The rows of a plan's moves whose subscriber is no longer where the move begins, or has left."""
    subscriber, source = plan.moves.subscriber, plan.moves.source
    here = subscriber < len(assignment)
    now = assignment[np.where(here, subscriber, 0)] if len(assignment) else np.full(len(subscriber), -1)
    return np.flatnonzero(~here | (now != source))


def applicable(plan: Plan, assignment: Int32s) -> bool:
    """Whether every move of a plan still begins where its subscriber is; if not, make a new plan."""
    return len(overtaken_moves(plan, assignment)) == 0

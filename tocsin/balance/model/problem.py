"""What a planner is asked: a workload, who is where now, and what it may do about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tocsin.balance.model.workload import Bools, Int32s, Workload
from tocsin.errors import InvalidError


@dataclass(frozen=True)
class MoveRules:
    """What may be moved, broker by broker and subscriber by subscriber. None allows it all.

    Args:
        draining: brokers that must end empty and receive nobody.
        pinned: brokers that nobody leaves and nobody comes to.
        joining: new brokers; if there are any, only they receive, so nothing moves between the old ones. (What leaves
            a draining broker may still go anywhere.)
        fixed: subscribers that stay where they are, unless their broker is draining.
    """

    draining: Bools | None = None
    pinned: Bools | None = None
    joining: Bools | None = None
    fixed: Bools | None = None

    def must_empty(self, brokers: int) -> Bools:
        """Which brokers must end empty."""
        return np.zeros(brokers, np.bool_) if self.draining is None else self.draining

    def sources(self, brokers: int) -> Bools:
        """Which brokers subscribers may leave."""
        return np.ones(brokers, np.bool_) if self.pinned is None else ~self.pinned

    def refuges(self, brokers: int) -> Bools:
        """Which brokers may receive what a draining broker gives up."""
        return self.sources(brokers) & ~self.must_empty(brokers)

    def destinations(self, brokers: int) -> Bools:
        """Which brokers may receive anybody."""
        open_ = self.refuges(brokers)
        if self.joining is not None and self.joining.any():
            return open_ & self.joining
        return open_


@dataclass(frozen=True)
class Problem:
    """One question to a planner.

    Args:
        assignment: the broker of each subscriber now.
        target: bring the highest load down to this multiple of the lower bound, whatever it takes, and no further;
            None: as low as the planner finds worth it.
        enough: without a target, a highest load that is low enough: for a lower one nobody need move.
        max_moves: move at most so many subscribers; None: any number. What leaves a draining broker comes first.
        seed: for planners that choose at random; the same seed gives the same plan.
    """

    workload: Workload
    assignment: Int32s
    rules: MoveRules = field(default_factory=MoveRules)
    target: float | None = None
    enough: float | None = None
    max_moves: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        brokers = self.workload.brokers
        for name, mask in (
            ("draining", self.rules.draining),
            ("pinned", self.rules.pinned),
            ("joining", self.rules.joining),
        ):
            if mask is not None and mask.shape != (brokers,):
                raise InvalidError(f"rules.{name} is for {len(mask)} brokers, but there are {brokers}")
        if (self.rules.must_empty(brokers) & ~self.rules.sources(brokers)).any():
            raise InvalidError("a broker cannot be pinned and draining at once; release one of the two")
        if self.rules.must_empty(brokers).any() and not self.rules.refuges(brokers).any():
            raise InvalidError("no broker is left to take what the draining ones give up; add one or drain fewer")

    def starting_at(self, assignment: Int32s) -> Problem:
        """The same question with everybody somewhere else."""
        return replace(self, assignment=assignment)

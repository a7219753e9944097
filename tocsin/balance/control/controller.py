"""The staged controller: it looks at the brokers' loads, asks a planner when they call for it, and lets its plan
through or not.

It has no clock and no threads, and carries nothing out: whoever runs it tells it the time, moves the subscribers of the
plan as it can, and reports which were moved.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from tocsin.balance.control.budget import cut_to_budget
from tocsin.balance.control.judgement import broken_rule, why_pointless
from tocsin.balance.control.observation import Observation, Standing
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.control.triggers import Due, Stage, due
from tocsin.balance.live.snapshot import WorkloadSnapshot
from tocsin.balance.model.plan import Moves, Plan
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Int64s
from tocsin.balance.planners.planner import Planner
from tocsin.errors import InvalidError


@dataclass(frozen=True)
class RefusedPlan:
    """A plan that was not let through, and why."""

    stage: Stage
    planner: str
    reason: str


@dataclass(frozen=True, eq=False)
class Decision:
    """What to do in a round.

    Args:
        reason: for people.
        plan: what to do, in the rows of the snapshot that the planner saw; None: nothing.
        moves: the plan's moves in the live workload's numbers.
        refused: which plans were considered, and why they were not let through.
    """

    stage: Stage
    reason: str
    plan: Plan | None = None
    moves: Moves | None = None
    refused: tuple[RefusedPlan, ...] = ()


class History:
    """What the controller remembers: when it last planned, and the moves of the last ``settle`` seconds.

    A newcomer with the number of somebody who was moved and has left since counts as moved, and so stays for a while.
    """

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._moved: deque[tuple[float, Int64s]] = deque()
        self._planned = -np.inf

    def plan(self, now: float) -> None:
        """A planner was asked."""
        self._planned = now

    def move(self, now: float, subscribers: Int64s) -> None:
        """These were moved; if nobody was, it is as if this had not been said."""
        if len(subscribers):
            self._planned = now
            self._moved.append((now, subscribers.copy()))

    def since_planned(self, now: float) -> float:
        """Seconds since the last plan or move."""
        return float(now - self._planned)

    def settling(self, now: float) -> Int64s:
        """Who was moved too lately to be moved again."""
        while self._moved and now - self._moved[0][0] >= self._settle:
            self._moved.popleft()
        return np.concatenate([np.empty(0, np.int64), *(subscribers for _, subscribers in self._moved)])


class Controller:
    """Decides round by round. At most one plan comes of a round, so a shuffle and a migration never run together.

    In this order: what drains; then, unless it is too soon after the last plan, joining brokers that have not got their
    share; then a shuffle, unless a migration is nearly as good; then a migration. When a plan is refused, the next of
    these is tried.

    Args:
        migration: serves migrations, and draining and joining brokers.
        shuffle: serves shuffles.
        thresholds: when it acts; None: as the product does.
    """

    def __init__(self, migration: Planner, shuffle: Planner, thresholds: Thresholds | None = None) -> None:
        self.thresholds = Thresholds.product() if thresholds is None else thresholds
        self._migration, self._shuffle = migration, shuffle
        self._history = History(self.thresholds.settle)

    def due(self, now: float, observed: Observation) -> Due:
        """Which stages would be tried at this moment. It looks at the brokers only, and asks no planner."""
        return due(self.thresholds, Standing.of(now, observed, self.thresholds), self._history.since_planned(now))

    def decide(self, now: float, observed: Observation) -> Decision:
        """What to do at this moment. ``now`` is in seconds, of the clock by which reports are timed."""
        standing = Standing.of(now, observed, self.thresholds)
        stages, reason = due(self.thresholds, standing, self._history.since_planned(now))
        refused = self._unheard(standing, observed.draining & standing.stale)
        if not stages:
            return Decision(Stage.IDLE, reason, refused=tuple(refused))
        snapshot = observed.snapshot()
        attempt = cache(partial(self._attempt, now=now, standing=standing, snapshot=snapshot))
        compares = self.thresholds.shuffle_gain > 0 and Stage.MIGRATE in dict(stages)
        for stage, why in stages:
            result = attempt(stage)
            if compares and stage is Stage.SHUFFLE and isinstance(result, Plan):
                result = self._prefer_migration(result, attempt(Stage.MIGRATE))
            if isinstance(result, Plan):
                return Decision(stage, why, result, snapshot.moves(result), tuple(refused))
            refused.append(result)
        return Decision(Stage.IDLE, f"{stages[0][1]}, but no plan for it was let through", refused=tuple(refused))

    def carried_out(self, now: float, moves: Moves) -> None:
        """Notes which moves, in the live workload's numbers, were made: those subscribers now stay for a while."""
        self._history.move(now, moves.subscriber)

    def _unheard(self, standing: Standing, brokers: frozenset[int]) -> list[RefusedPlan]:
        if not brokers:
            return []
        reason = f"no recent report from {standing.in_words(brokers)}, so nobody is moved away"
        return [RefusedPlan(Stage.DRAIN, self._migration.name, reason)]

    def _prefer_migration(self, shuffle: Plan, migration: Plan | RefusedPlan) -> Plan | RefusedPlan:
        """The shuffle, or why not: a migration does nearly as much."""
        part = self.thresholds.shuffle_gain
        if isinstance(migration, RefusedPlan) or shuffle.after.max <= (1 - part) * migration.after.max:
            return shuffle
        lower = f"{max(1 - shuffle.after.max / migration.after.max, 0):.1%}"
        return RefusedPlan(
            Stage.SHUFFLE,
            shuffle.planner,
            f"it would move {len(shuffle.moves):,}, and a migration of {len(migration.moves):,} does nearly as much: "
            f"the highest load would end {lower} lower than with that, and {part:.0%} are asked for",
        )

    def _attempt(self, stage: Stage, now: float, standing: Standing, snapshot: WorkloadSnapshot) -> Plan | RefusedPlan:
        planner = self._shuffle if stage is Stage.SHUFFLE else self._migration
        if stage is not Stage.DRAIN:
            self._history.plan(now)
        try:
            problem = self._problem(stage, now, standing, snapshot)
            plan = planner.plan(problem)
            if why := broken_rule(problem, plan):
                return RefusedPlan(stage, planner.name, why)
            plan = cut_to_budget(problem, plan, self.thresholds.max_moves, self.thresholds.min_gain)
        except InvalidError as error:
            return RefusedPlan(stage, planner.name, str(error))
        if stage is Stage.DRAIN:
            why = "" if len(plan.moves) else f"it moves nobody ({plan.status})"
        else:
            joining = snapshot.mask(standing.joining) if stage is Stage.JOIN else None
            why = why_pointless(plan, snapshot.mask(standing.open), self.thresholds.min_improvement, joining)
        return RefusedPlan(stage, planner.name, why) if why else plan

    def _problem(self, stage: Stage, now: float, standing: Standing, snapshot: WorkloadSnapshot) -> Problem:
        drains = standing.draining if stage is Stage.DRAIN else frozenset[int]()
        return snapshot.problem(
            draining=drains,
            pinned=frozenset(snapshot.brokers.tolist()) - standing.open - drains,
            joining=standing.joining if stage is Stage.JOIN else (),
            fixed=snapshot.subscribers if stage is Stage.DRAIN else self._staying(now, snapshot),
            enough=self._enough(stage, standing),
            max_moves=self.thresholds.max_moves,
        )

    def _enough(self, stage: Stage, standing: Standing) -> float | None:
        """For which highest load nobody need move; a new broker gets its share all the same."""
        enough = self.thresholds.enough(standing.each)
        if enough is None or stage not in (Stage.MIGRATE, Stage.SHUFFLE):
            return None
        return enough * standing.figures.mean

    def _staying(self, now: float, snapshot: WorkloadSnapshot) -> Int64s:
        """Who was moved lately, and who brings no load: a planner could put those anywhere, as many as there are."""
        return np.union1d(self._history.settling(now), snapshot.subscribers[snapshot.workload.own == 0])

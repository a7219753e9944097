"""The greedy shuffle (GSH), section 5.3 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tocsin.balance.bounds import lower_bound
from tocsin.balance.compiled import compiled
from tocsin.balance.model.plan import LoadFigures, Plan, PlanStatus, Reason
from tocsin.balance.model.problem import Problem
from tocsin.balance.model.workload import Bools, Floats, Int32s, Int64s, Workload
from tocsin.balance.planners.candidates import lightest
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.planners.masks import Masks, masks
from tocsin.balance.planners.ranks import Words, rank_by_load

_NOWHERE = np.int32(-1)


@dataclass(frozen=True)
class GSH:
    """All brokers start empty; the heaviest subscriber goes to the least loaded broker, and so on to the lightest.

    Of equal subscribers and of equal brokers the lower number is first. A shuffle costs one look at every BE
    subscription of everybody and, per subscriber, one at every broker; nearly everybody moves.

    Who may not move is on its broker from the start. With joining brokers a subscriber goes to the least loaded of
    those and its own. Once a budget of moves is used up, whoever comes next stays; what drains has its moves set apart.
    With a target, nothing is shuffled that meets it already.

    Args:
        only_better: as every planner, propose nothing when the highest load would be above the one now (and no broker
            drains); the plan is then stuck. False: the shuffle of the paper, whatever comes of it.
    """

    only_better: bool = True

    name: ClassVar[str] = "gsh"

    def plan(self, problem: Problem) -> Plan:
        """Everybody placed anew."""
        seating = Seating.of(problem.workload)
        seat_all(seating, problem.assignment)
        before = seating.figures(problem.workload)
        ceiling = np.inf if problem.target is None else problem.target * lower_bound(problem)
        if problem.target is not None and before.max <= ceiling and not _urgent(problem):
            return self._keep_all(problem, PlanStatus.IDLE, before)
        assignment, steps, capped, after = shuffle(problem)
        if self.only_better and after.max > before.max and not _urgent(problem):
            return self._keep_all(problem, PlanStatus.STUCK, before)
        status = PlanStatus.CAPPED if capped else PlanStatus.BALANCED if after.max <= ceiling else PlanStatus.STUCK
        if status is PlanStatus.BALANCED and not len(steps):
            status = PlanStatus.IDLE
        return make_plan(problem, self.name, status, assignment, Reason.SHUFFLE, steps, (before, after))

    def _keep_all(self, problem: Problem, status: PlanStatus, figures: LoadFigures) -> Plan:
        steps = np.empty((0, 3), np.int64)
        return make_plan(
            problem, self.name, status, problem.assignment.copy(), Reason.SHUFFLE, steps, (figures, figures)
        )


class Seating(NamedTuple):
    """What is on the brokers so far, while they are filled; ``holding[k]`` has a bit for each broker that holds k."""

    indptr: Int64s
    idx: Int32s
    rates: Int64s
    weights: Floats
    holding: Words
    incoming: Int64s
    outgoing: Int64s
    loads: Floats

    @classmethod
    def of(cls, workload: Workload) -> Seating:
        """Empty brokers."""
        brokers = workload.brokers
        return cls(
            workload.indptr,
            workload.idx,
            workload.rates,
            workload.weights,
            holding=np.zeros((workload.subscriptions, (brokers + 63) // 64), np.uint64),
            incoming=np.zeros(brokers, np.int64),
            outgoing=np.zeros(brokers, np.int64),
            loads=np.zeros(brokers),
        )

    def figures(self, workload: Workload) -> LoadFigures:
        """The figures of who is seated."""
        return LoadFigures(self.incoming, self.outgoing, (self.incoming + self.outgoing) * workload.weights)


def shuffle(problem: Problem) -> tuple[Int32s, Int64s, bool, LoadFigures]:
    """The new assignment, who moved in their order, whether a budget cut it short, and the figures afterwards."""
    workload, home = problem.workload, problem.assignment
    stays = _stays(problem)
    seating, order = Seating.of(workload), rank_by_load(workload.own)
    seat_all(seating, np.where(stays, home, _NOWHERE))
    assignment, capped = seat_heaviest_first(seating, order, home, stays, masks(problem), *_budgets(problem))
    movers = order[assignment[order] != home[order]]
    steps = np.stack([movers, home[movers], assignment[movers]], axis=1).astype(np.int64)
    return assignment, steps, capped, seating.figures(workload)


def _stays(problem: Problem) -> Bools:
    """Who may not move: on pinned brokers, and the fixed ones unless their broker drains. Nobody nowhere."""
    rules, brokers, home = problem.rules, problem.workload.brokers, problem.assignment
    stays = ~rules.sources(brokers)[home]
    if rules.fixed is not None:
        stays |= rules.fixed & ~rules.must_empty(brokers)[home]
    return np.asarray(stays & (home >= 0))


def _budgets(problem: Problem) -> tuple[int, int]:
    """How many may move that must, being on a draining broker or nowhere; and how many others."""
    total = problem.workload.subscribers
    budget = total if problem.max_moves is None else problem.max_moves
    must = int(np.count_nonzero(_must(problem)))
    return min(must, budget), max(budget - must, 0)


def _must(problem: Problem) -> Bools:
    home = problem.assignment
    return np.asarray(problem.rules.must_empty(problem.workload.brokers)[home] | (home < 0))


def _urgent(problem: Problem) -> bool:
    return bool(_must(problem).any())


@compiled
def seat_all(seating: Seating, assignment: Int32s) -> None:
    """Seats everybody who is somewhere."""
    for i in range(len(assignment)):
        if assignment[i] >= 0:
            seat(seating, i, assignment[i])


@compiled
def seat(seating: Seating, subscriber: int, broker: int) -> None:
    """Puts a subscriber on a broker, equation 5."""
    word, bit = broker >> 6, np.uint64(1) << np.uint64(broker & 63)
    incoming, outgoing = 0, 0
    for at in range(seating.indptr[subscriber], seating.indptr[subscriber + 1]):
        k = seating.idx[at]
        rate = seating.rates[k]
        outgoing += rate
        if seating.holding[k, word] & bit == 0:
            seating.holding[k, word] |= bit
            incoming += rate
    seating.incoming[broker] += incoming
    seating.outgoing[broker] += outgoing
    seating.loads[broker] = (seating.incoming[broker] + seating.outgoing[broker]) * seating.weights[broker]


@compiled
def precedes(loads: Floats, broker: int, other: int) -> bool:
    """Whether a broker is less loaded than another, or as much and of a lower number."""
    return bool(loads[broker] < loads[other] or (loads[broker] == loads[other] and broker < other))


@compiled
def seat_heaviest_first(
    seating: Seating, order: Int64s, home: Int32s, stays: Bools, rules: Masks, urgent: int, others: int
) -> tuple[Int32s, bool]:
    """Seats all who do not stay, heaviest first, within the budgets. The new assignment, and whether a budget bound."""
    assignment = home.copy()
    capped = False
    for i in order:
        if stays[i]:
            continue
        must = home[i] < 0 or rules.drained[home[i]]
        broker = lightest(seating.loads, rules.refuges if must else rules.destinations)
        if not must and (broker < 0 or precedes(seating.loads, home[i], broker)):
            broker = home[i]
        if broker != home[i]:
            left = urgent if must else others
            if left == 0:
                capped, broker = True, home[i]
            elif must:
                urgent -= 1
            else:
                others -= 1
        assignment[i] = broker
        if broker >= 0:
            seat(seating, i, broker)
    return assignment, capped

"""An instance solved by a planner: from the file's problem to the figures that are printed."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np
from rich.table import Table

from tocsin.balance.model.explain import broker_changes, load, sentences
from tocsin.balance.model.plan import Plan, Reason
from tocsin.balance.model.problem import MoveRules, Problem
from tocsin.balance.model.workload import Workload
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.planners.planner import Planner
from tocsin.balance.warming import warm_up
from tocsin.errors import InvalidError


class Answer(msgspec.Struct, frozen=True):
    """What ``--json`` prints. Loads are bytes per second, or utilisations where brokers have capacities.

    ``seconds`` is the planning alone, ``warm_up_seconds`` what it took before to compile or load the planner, and
    ``peak_mib`` the most memory that the process had.
    """

    planner: str
    status: str
    max_load: float
    lower_bound: float
    ratio: float
    total: int
    cov: float
    moved: int
    moves_lower_bound: int
    seconds: float
    warm_up_seconds: float
    peak_mib: float


class Solution(NamedTuple):
    """A plan, and what it took to make it."""

    plan: Plan
    seconds: float
    warm_up_seconds: float
    peak_mib: float

    @property
    def answer(self) -> Answer:
        """The figures."""
        plan = self.plan
        return Answer(
            planner=plan.planner,
            status=plan.status.value,
            max_load=plan.after.max,
            lower_bound=plan.lower_bound,
            ratio=plan.ratio,
            total=plan.after.total,
            cov=plan.after.cov,
            moved=len(plan.moves),
            moves_lower_bound=plan.moves_lower_bound,
            seconds=self.seconds,
            warm_up_seconds=self.warm_up_seconds,
            peak_mib=self.peak_mib,
        )

    @property
    def remarks(self) -> list[str]:
        """The plan in sentences, and what it took."""
        took = f"Planned in {self.seconds:.3g} s (after {self.warm_up_seconds:.2g} s to warm up)"
        return [*sentences(self.plan), f"{took}, with at most {self.peak_mib:,.0f} MiB of memory."]


def find_solution(problem: Problem, planner: Planner, *, from_nothing: bool) -> Solution:
    """Plans, after a warm-up. From nothing, nobody has a broker at first; who moves is still counted from where it is.

    From nothing, everybody waits on a broker more, which drains: so every planner knows what to do, and moves all.
    """
    if from_nothing and problem.max_moves is not None:
        raise InvalidError("--max-moves counts from where subscribers are now; leave it out, or keep that with --start")
    asked = _from_nothing(problem) if from_nothing else problem
    warm_up_seconds = warm_up(planner, asked)
    began = time.perf_counter()
    plan = planner.plan(asked)
    seconds = time.perf_counter() - began
    if from_nothing:
        plan = make_plan(problem, plan.planner, plan.status, plan.assignment, Reason.SHUFFLE)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Solution(plan, seconds, warm_up_seconds, peak)


def _from_nothing(problem: Problem) -> Problem:
    workload, brokers = problem.workload, problem.workload.brokers
    return replace(
        problem,
        workload=_with_another_broker(workload),
        assignment=np.full(workload.subscribers, brokers, np.int32),
        rules=MoveRules(draining=np.arange(brokers + 1) == brokers),
    )


def _with_another_broker(workload: Workload) -> Workload:
    capacity = None if workload.capacity is None else np.append(workload.capacity, workload.capacity.max())
    return replace(workload, brokers=workload.brokers + 1, capacity=capacity, broker_locations=None)


def brokers(plan: Plan) -> Table:
    """The brokers before and after a plan."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("broker", "load before", "after", "incoming before", "after", "left", "came"):
        table.add_column(heading, justify="right")
    for line in broker_changes(plan):
        table.add_row(
            str(line.broker),
            load(line.load_before, plan.before),
            load(line.load_after, plan.after),
            f"{line.incoming_before:,}",
            f"{line.incoming_after:,}",
            f"{line.left:,}",
            f"{line.came:,}",
        )
    return table

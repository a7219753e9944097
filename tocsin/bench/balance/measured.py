"""What is measured of a planner on an instance."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tocsin.balance.bounds import lower_bound
from tocsin.balance.bounds.holders import HolderSums
from tocsin.balance.bounds.lowest import spread
from tocsin.balance.bounds.spectral import spectral_bound
from tocsin.balance.instances.kinds import generate
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.problem import Problem
from tocsin.bench.balance.cases import Case
from tocsin.bench.balance.process import forget_peak, one_core, peak_mib
from tocsin.bench.report import median

_TURNS = 5
_QUICK = 2.0  # seconds; what takes longer is measured once
_AS_LOW = 1.0005  # the same to three decimals: a shuffle ends dead even, and the last byte of that costs most moves
_SPECTRAL = 20_000  # subscribers; with more, the spectral bound takes minutes


class Measured(NamedTuple):
    """A case on one instance, or the medians over several. The highest load is in multiples of LB1."""

    highest: float
    moved: float
    moves_bound: float
    seconds: float
    peak: float

    @classmethod
    def middle(cls, several: Sequence[Measured]) -> Measured:
        """The medians."""
        return cls(*(median(values) for values in zip(*several, strict=True)))


class InstanceRun(NamedTuple):
    """All cases on one instance; ``levels`` are the start and the bounds by their names, in multiples of LB1."""

    levels: dict[str, float]
    cases: dict[str, Measured]


def measure_cases(kind: str, seed: int, cases: Sequence[Case], say: Callable[[str], None]) -> InstanceRun:
    """Every case on the instance of a seed."""
    say(f"making {kind} of seed {seed}")
    workload, assignment = generate(kind, seed)
    problem = Problem(workload, assignment, seed=seed)
    least = spread(workload, HolderSums.of(workload))
    run = InstanceRun(_levels(problem, least), {})
    for case in cases:
        say(f"{case.name} on {kind} of seed {seed}")
        run.cases[case.name] = _measure(case, replace(problem, target=_target(case, kind, run)), least)
    return run


def _levels(problem: Problem, least: float) -> dict[str, float]:
    levels = {
        "start": float(Loads(problem.workload, problem.assignment).utilisation.max()) / least,
        "lower bound": lower_bound(problem) / least,
    }
    if problem.workload.subscribers <= _SPECTRAL:
        levels["spectral bound"] = spectral_bound(problem) / least
    return levels


def _target(case: Case, kind: str, run: InstanceRun) -> float | None:
    if case.targets:
        return case.targets[kind] / run.levels["lower bound"]
    if not case.as_low_as:
        return None
    return _AS_LOW * run.cases[case.as_low_as].highest / run.levels["lower bound"]


def _measure(case: Case, problem: Problem, least: float) -> Measured:
    planner = case.make_planner()
    forget_peak()
    turns: list[float] = []
    with one_core():
        while not turns or (len(turns) < _TURNS and turns[0] < _QUICK):
            began = time.perf_counter()
            plan = planner.plan(problem)
            turns.append(time.perf_counter() - began)
    return Measured(plan.after.max / least, len(plan.moves), plan.moves_lower_bound, median(turns), peak_mib())

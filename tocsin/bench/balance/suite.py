"""The whole of ``tocsin bench balance``: every planner on every kind, on one core, after a warm-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tocsin.balance.instances.kinds import generate
from tocsin.balance.model.problem import Problem
from tocsin.balance.warming import warm_up
from tocsin.bench.balance import targets
from tocsin.bench.balance.cases import BASELINE, CASES, PEER, Case
from tocsin.bench.balance.measured import InstanceRun, Measured, measure_cases
from tocsin.bench.balance.process import one_core
from tocsin.bench.report import Figure, median

KINDS = ("P", "S", "SC", "L", "LC")


def run(
    kinds: Sequence[str], planners: Sequence[str], seeds: Sequence[int], peer: bool, say: Callable[[str], None]
) -> Iterator[Figure]:
    """Measures the planners asked for, and the baseline, on all kinds; the figures are medians over the seeds."""
    cases = [case for case in CASES if case.planner in planners or case is BASELINE] + [PEER] * peer
    for case in cases:
        say(f"warming up {case.name}")
        yield Figure("warm-up", case.name, _warm_up(case), "s")
    for kind in kinds:
        concerned = [case for case in cases if case.concerns(kind)]
        runs = [measure_cases(kind, seed, concerned, say) for seed in seeds]
        yield from _highest(kind, runs)
        middles = {case.name: Measured.middle([run.cases[case.name] for run in runs]) for case in concerned}
        yield from _move_figures(kind, middles)
        yield from _seconds(kind, middles)
        yield from _memory(kind, middles)


def _warm_up(case: Case) -> float:
    workload, assignment = generate("P")
    with one_core():
        return warm_up(
            case.make_planner(), Problem(workload, assignment, target=2.0 if case.as_low_as or case.targets else None)
        )


def _highest(kind: str, runs: Sequence[InstanceRun]) -> Iterator[Figure]:
    group, unit = f"{kind}: highest load", "× LB1"
    for name in runs[0].levels:
        yield Figure(group, name, median([run.levels[name] for run in runs]), unit)
    baseline = median([run.cases[BASELINE.name].highest for run in runs])
    for name in runs[0].cases:
        value = median([run.cases[name].highest for run in runs])
        yield _figure(group, name, value, unit, value / baseline, targets.HIGHEST.get(name, {}).get(kind))


def _move_figures(kind: str, middles: Mapping[str, Measured]) -> Iterator[Figure]:
    """Moves against their own bound: no plan that ends as low moves fewer."""
    group = f"{kind}: moved"
    for name, one in middles.items():
        if not one.moves_bound:
            yield Figure(group, name, one.moved, "subscribers")
            continue
        ratio, target = one.moved / one.moves_bound, targets.MOVED.get(name, {}).get(kind)
        said = f"at most {target:g}×" if target else ""
        met = ratio <= target if target else None
        yield Figure(group, name, one.moved, "subscribers", ratio, f"bound {one.moves_bound:,.0f}", said, met)


def _seconds(kind: str, middles: Mapping[str, Measured]) -> Iterator[Figure]:
    baseline = middles[BASELINE.name].seconds
    for name, one in middles.items():
        target = targets.SECONDS.get(name, {}).get(kind)
        yield _figure(f"{kind}: planning", name, one.seconds, "s", one.seconds / baseline, target)


def _memory(kind: str, middles: Mapping[str, Measured]) -> Iterator[Figure]:
    baseline = middles[BASELINE.name].peak
    for name, one in middles.items():
        target = targets.MEBIBYTES.get(name, {}).get(kind)
        yield _figure(f"{kind}: peak of memory", name, one.peak, "MiB", one.peak / baseline, target)


def _figure(group: str, name: str, value: float, unit: str, ratio: float, target: float | None) -> Figure:
    """A figure beside the baseline's, with what it should be at most."""
    said = f"at most {target:g} {unit}" if target else ""
    return Figure(group, name, value, unit, ratio, BASELINE.name, said, value <= target if target else None)

"""The benchmark of planners: its figures mean what they say."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from tests.cli.program import Program
from tocsin.balance.instances.kinds import InstanceKind, generate, make
from tocsin.balance.model.loads import Loads
from tocsin.balance.model.problem import Problem
from tocsin.balance.policies import planner
from tocsin.bench.balance.cases import CASES, Case
from tocsin.bench.balance.mtkahypar import MtKaHyPar
from tocsin.bench.balance.process import forget_peak, one_core, peak_mib
from tocsin.bench.balance.suite import run
from tocsin.bench.report import Figure


@pytest.fixture
def tocsin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(monkeypatch, capsys)


@pytest.fixture
def _quick_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.bench.balance.measured._SPECTRAL", 0)


def _by_name(figures: list[Figure], group: str) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures if figure.group == group}


@pytest.mark.usefixtures("_quick_bounds")
def test_every_planner_is_measured_beside_the_baseline() -> None:
    said: list[str] = []
    figures = list(run(["P"], ["ldm", "multistage"], [1, 2], False, said.append))
    groups = ["warm-up", "P: highest load", "P: moved", "P: planning", "P: peak of memory"]
    assert list(dict.fromkeys(figure.group for figure in figures)) == groups
    for group in groups:
        assert {"gsh", "ldm", "multistage"} <= set(_by_name(figures, group))
    assert "ldm on P of seed 2" in said


@pytest.mark.usefixtures("_quick_bounds")
def test_loads_are_medians_over_the_seeds_in_multiples_of_the_even_spread() -> None:
    figures = list(run(["P"], ["gsh"], [1, 2, 3], False, lambda _: None))
    highest = _by_name(figures, "P: highest load")
    ratios = []
    for seed in (1, 2, 3):
        workload, now = generate("P", seed)
        least = (workload.own.sum() + workload.rates[np.unique(workload.idx)].sum()) / workload.brokers
        ratios.append(planner("gsh").plan(Problem(workload, now)).after.max / least)
    assert highest["gsh"].value == pytest.approx(float(np.median(ratios)))
    assert highest["gsh"].ratio == 1


def test_the_start_and_the_bounds_are_shown_beside_the_planners(monkeypatch: pytest.MonkeyPatch) -> None:
    small = InstanceKind(60, 3, 40, (3, 8), skew=1.2)
    monkeypatch.setattr("tocsin.bench.balance.measured.generate", lambda _, seed: make(small, seed))
    highest = _by_name(list(run(["P"], ["gsh"], [1], False, lambda _: None)), "P: highest load")
    levels = [highest[name].value for name in ("lower bound", "spectral bound", "gsh", "start")]
    assert levels == sorted(levels)


@pytest.mark.usefixtures("_quick_bounds")
def test_moves_are_compared_with_the_fewest_possible() -> None:
    figures = list(run(["P"], ["ldm"], [1], False, lambda _: None))
    moved = _by_name(figures, "P: moved")["ldm"]
    assert moved.ratio is not None
    assert moved.ratio >= 1
    assert moved.baseline == f"bound {moved.value / moved.ratio:,.0f}"


def test_a_case_can_have_the_load_of_another_as_its_target() -> None:
    case = next(case for case in CASES if case.as_low_as)
    assert case.name == "migrate to gsh"
    assert Case("gsh").name == "gsh"


def test_measuring_keeps_to_one_core_and_gives_back_the_others() -> None:
    allowed = os.sched_getaffinity(0)
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == allowed


def test_the_peak_of_memory_counts_what_was_used_since_it_was_forgotten() -> None:
    forget_peak()
    before = peak_mib()
    block = np.ones(64 << 17)
    assert block.nbytes == 64 << 20
    assert peak_mib() - before > 50


def test_mt_kahypar_makes_a_balanced_plan_of_few_copies() -> None:
    pytest.importorskip("mtkahypar")
    workload, now = make(InstanceKind(300, 4, 100, (3, 8), communities=8), 1)
    plan = MtKaHyPar().plan(Problem(workload, now))
    loads = Loads(workload, plan.assignment)
    assert set(plan.assignment) == {0, 1, 2, 3}
    assert loads.outgoing.max() < 1.05 * loads.outgoing.mean()
    assert loads.incoming.sum() < planner("gsh").plan(Problem(workload, now)).after.incoming.sum()


@pytest.mark.usefixtures("_quick_bounds")
def test_figures_are_printed_as_lines_of_json(tocsin: Program) -> None:
    ended = tocsin("bench", "balance", "--kind", "P", "--planner", "ldm", "--seeds", "1", "--json")
    assert ended.status == 0
    figures = [json.loads(line) for line in ended.out.splitlines()]
    assert {figure["name"] for figure in figures} == {"gsh", "ldm", "start", "lower bound"}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--kind", "M", "there is no kind M; there are P, S, SC, L, LC, XL"),
        ("--planner", "best", "there is no planner best; there are ldm, sdm, gsh"),
        ("--seeds", "1,x", "'1,x' is not a list of whole numbers; write them as 1,2,3"),
    ],
)
def test_what_does_not_exist_is_not_measured(tocsin: Program, option: str, value: str, message: str) -> None:
    refused = tocsin("bench", "balance", option, value)
    assert refused.status == 1
    assert refused.err.startswith(f"error: {message}")

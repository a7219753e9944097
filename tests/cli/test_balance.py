"""``tocsin balance`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.program import Program
from tocsin.balance.bounds import lower_bound, moves_lower_bound
from tocsin.balance.instances.file import read, write
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.loads import Loads, cov
from tocsin.balance.model.problem import Problem

FIGURES = {
    *("planner", "status", "max_load", "lower_bound", "ratio", "total", "cov", "moved", "moves_lower_bound"),
    *("seconds", "warm_up_seconds", "peak_mib"),
}


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    path = tmp_path / "small.npz"
    write(path, *make(InstanceKind(200, 4, 80, (2, 8), skew=1.2), 3))
    return path


def _solved(tocsin: Program, instance: Path, *options: str) -> dict[str, Any]:
    ended = tocsin("balance", "solve", str(instance), "--json", *options)
    assert (ended.status, ended.err) == (0, "")
    answer: dict[str, Any] = json.loads(ended.out)
    return answer


@pytest.mark.parametrize("planner", ["ldm", "sdm", "gsh", "multistage", "shuffle", "migrate"])
def test_the_figures_are_those_of_the_plan_that_is_written(tocsin: Program, instance: Path, planner: str) -> None:
    answer = _solved(tocsin, instance, "--planner", planner, "--out", "plan.npz")
    assert set(answer) == FIGURES
    workload, now = read(instance)
    with np.load("plan.npz") as plan:
        after = plan["a"]
    loads = Loads(workload, after)
    assert answer["planner"] == planner
    assert answer["max_load"] == loads.total.max() <= Loads(workload, now).total.max()
    assert answer["total"] == loads.total.sum()
    assert answer["cov"] == pytest.approx(cov(loads.total))
    assert answer["moved"] == (after != now).sum()
    problem = Problem(workload, now)
    assert answer["lower_bound"] == lower_bound(problem)
    assert answer["ratio"] == pytest.approx(answer["max_load"] / answer["lower_bound"])
    assert answer["moves_lower_bound"] == moves_lower_bound(problem, answer["max_load"]) <= answer["moved"]
    assert min(answer["seconds"], answer["warm_up_seconds"], answer["peak_mib"]) > 0


@pytest.mark.parametrize("planner", ["ldm", "sdm", "gsh", "multistage", "shuffle", "migrate"])
def test_from_nothing_everybody_gets_a_broker_and_moves_count_from_now(
    tocsin: Program, instance: Path, planner: str
) -> None:
    answer = _solved(tocsin, instance, "--planner", planner, "--start", "empty", "--out", "plan.npz")
    workload, now = read(instance)
    with np.load("plan.npz") as plan:
        after = plan["a"]
    assert set(after) == set(range(workload.brokers))
    assert answer["moved"] == (after != now).sum()
    assert answer["max_load"] == Loads(workload, after).total.max()
    assert answer["moves_lower_bound"] <= answer["moved"]


def test_from_nothing_it_does_not_matter_where_subscribers_are(tocsin: Program, instance: Path) -> None:
    workload, _ = read(instance)
    plans = []
    for now in (np.zeros(200, np.int32), np.full(200, 3, np.int32)):
        write(instance, workload, now)
        _solved(tocsin, instance, "--planner", "ldm", "--start", "empty", "--out", "plan.npz")
        with np.load("plan.npz") as plan:
            plans.append(plan["a"].tolist())
    assert plans[0] == plans[1]


def test_from_nothing_a_budget_of_moves_makes_no_sense(tocsin: Program, instance: Path) -> None:
    refused = tocsin("balance", "solve", str(instance), "--start", "empty", "--max-moves", "3", "--planner", "ldm")
    assert refused.status == 1
    assert "--max-moves counts from where subscribers are now" in refused.err


def test_a_budget_and_a_target_are_kept(tocsin: Program, instance: Path) -> None:
    assert _solved(tocsin, instance, "--planner", "ldm", "--max-moves", "5")["moved"] == 5
    whole = _solved(tocsin, instance, "--planner", "ldm", "--alpha", "0")
    half = _solved(tocsin, instance, "--planner", "ldm", "--alpha", "0", "--target-max", "1.8")
    assert half["moved"] < whole["moved"]
    assert whole["ratio"] < half["ratio"] <= 1.8


def test_capacities_make_loads_utilisations(tocsin: Program, instance: Path, tmp_path: Path) -> None:
    with np.load(instance) as arrays:
        np.savez(tmp_path / "capacities.npz", **arrays, capacity=[1e6, 2e6, 3e6, 4e6])
    answer = _solved(tocsin, tmp_path / "capacities.npz", "--planner", "gsh", "--out", "plan.npz")
    workload, _ = read(tmp_path / "capacities.npz")
    with np.load("plan.npz") as plan:
        assert answer["max_load"] == Loads(workload, plan["a"]).utilisation.max() < 1


def test_without_json_brokers_are_shown_and_the_plan_is_told_in_sentences(tocsin: Program, instance: Path) -> None:
    shown = tocsin("balance", "solve", str(instance), "--planner", "ldm")
    assert shown.status == 0
    table = shown.out.splitlines()
    assert table[0].split()[:3] == ["broker", "load", "before"]
    assert [line.split()[0] for line in table[1:5]] == ["0", "1", "2", "3"]
    assert "ldm moves" in shown.out
    assert "cov goes from" in shown.out
    assert "Planned in" in shown.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("solve", "small.npz", "--planner", "best"), "there is no planner 'best'; there are ldm, sdm, gsh"),
        (("solve", "small.npz", "--planner", "gsh", "--alpha", "0.1"), "planner 'gsh' has no 'alpha'"),
        (("solve", "other.npz", "--planner", "gsh"), "there is no file other.npz"),
        (("solve", "broken.npz", "--planner", "gsh"), "broken.npz is not an .npz file"),
        (("solve", "small.npz", "--planner", "gsh", "--out", "no/plan.npz"), "no/plan.npz cannot be written"),
        (("generate", "M"), "there is no kind of instance 'M'; the kinds are P, S, SC, L, LC, XL"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    tocsin: Program, instance: Path, arguments: tuple[str, ...], message: str
) -> None:
    Path("broken.npz").write_text("not an instance", encoding="utf-8")
    refused = tocsin("balance", *arguments)
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith(f"error: {message}")
    assert refused.err.count("\n") == 1


def test_an_instance_of_a_kind_is_made_from_a_seed(tocsin: Program) -> None:
    made = tocsin("balance", "generate", "P", "--seed", "4", "--out", "mine.npz")
    assert (made.status, made.out) == (0, "")
    assert made.err.startswith("mine.npz: 400 subscribers, 5 brokers, 620 BE subscriptions, held 2,")
    assert tocsin("balance", "generate", "P", "--seed", "4").status == 0
    (one, _), (again, _) = read(Path("mine.npz")), read(Path("P.npz"))
    assert one.idx.tolist() == again.idx.tolist()

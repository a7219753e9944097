"""Policies by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.balance.examples import example
from tocsin.balance import policies
from tocsin.balance.model.loads import Loads
from tocsin.balance.placement.placement import Newcomer, View
from tocsin.balance.planners.sdm import SDM
from tocsin.errors import InvalidError


@pytest.mark.parametrize("name", policies.PLANNERS)
def test_every_planner_bears_its_name_and_plans(name: str) -> None:
    planner = policies.planner(name)
    assert planner.name == name
    plan = planner.plan(example([[0]] * 6, [10], 3, [0] * 6))
    assert plan.planner == name
    assert plan.after.max <= plan.before.max


@pytest.mark.parametrize("name", policies.PLACEMENTS)
def test_every_placement_bears_its_name_and_places(name: str) -> None:
    placement = policies.placement(name)
    assert placement.name == name
    problem = example([], [], 3, [])
    assert placement.place(View.of(Loads(problem.workload, problem.assignment)), Newcomer()) in (0, 1, 2)


@pytest.mark.parametrize(
    ("short", "name"), [("nr", "nearest"), ("rr", "round-robin"), ("rnd", "random"), ("ll", "least-loaded")]
)
def test_placements_are_known_by_the_papers_short_names_too(short: str, name: str) -> None:
    assert policies.placement(short).name == name


def test_a_policy_is_made_with_the_settings_given() -> None:
    assert policies.planner("sdm", alpha=0.05, strict=False) == SDM(alpha=0.05, strict=False)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidError, match=r"no planner 'best'; there are ldm, sdm, gsh, multistage, shuffle, migrate"):
        policies.planner("best")
    with pytest.raises(InvalidError, match=r"no placement 'far'; there are nearest, round-robin"):
        policies.placement("far")


def test_an_unknown_setting_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidError, match=r"planner 'ldm' has no 'gamma'; it has alpha, beta, strict, max_steps"):
        policies.planner("ldm", gamma=0.5)
    with pytest.raises(InvalidError, match=r"placement 'round-robin' has no 'seed'; it has no settings"):
        policies.placement("rr", seed=1)


def test_a_policy_of_ones_own_is_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "my_policy.py").write_text(
        "from tocsin.balance.planners.ldm import LDM\nclass Mine(LDM):\n    name = 'mine'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(policies.PLANNERS, "mine", "my_policy:Mine")
    assert policies.planner("mine", alpha=0.3).name == "mine"

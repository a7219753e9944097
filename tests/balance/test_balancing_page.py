"""What docs/balancing.md shows runs, and prints what a reader would expect."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from tests.pages import ROOT, blocks
from tocsin.balance.control.thresholds import Thresholds
from tocsin.balance.instances.kinds import InstanceKind, make
from tocsin.balance.model.problem import Problem

PAGE = ROOT / "docs" / "balancing.md"
ALONE, LIVE, OWN = blocks(PAGE, "python")


def run(shown: str) -> dict[str, object]:
    """Runs a block as it stands; the names it leaves."""
    names: dict[str, object] = {"__name__": "shown"}
    exec(compile(shown, str(PAGE), "exec", dont_inherit=True), names)
    return names


def test_a_plan_is_made_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    run(ALONE)
    said = capsys.readouterr().out
    assert said.startswith("ldm moves ")
    assert "The highest load falls from 270 B/s" in said


def test_a_live_workload_is_balanced_by_the_controller(capsys: pytest.CaptureFixture[str]) -> None:
    run(LIVE)
    assert capsys.readouterr().out == "migrate because cov is 1.000, above α = 0.15\n"


def test_a_policy_of_ones_own_makes_plans() -> None:
    workload, start = make(InstanceKind(30, 3, 10, (1, 3)), seed=1)
    plan = run(OWN)["Heads"]().plan(Problem(workload, start))  # type: ignore[operator]
    assert np.bincount(plan.assignment).tolist() == [10, 10, 10]


def test_every_setting_of_the_controller_is_described() -> None:
    table = PAGE.read_text(encoding="utf-8")
    assert [name for name in Thresholds.__dataclass_fields__ if f"`{name}`" not in table] == []


@pytest.mark.parametrize("figure", ["model", "placement", "migration", "shuffle", "ours"])
def test_figures_are_drawings_with_a_title(figure: str) -> None:
    drawing = ElementTree.parse(ROOT / "docs" / "figures" / f"balancing-{figure}.svg").getroot()
    assert drawing.find("{http://www.w3.org/2000/svg}title") is not None

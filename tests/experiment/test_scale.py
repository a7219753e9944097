from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest

from tests.cli.program import Program
from tocsin.experiment.scale import claims
from tocsin.experiment.scale.rows import PlanRow
from tocsin.experiment.scale.study import SIZES, Scale
from tocsin.experiment.verdict import Holds

GSH = PlanRow(5, 1000, 100, 20_000, 1, "gsh", 100.0, 300.0, 110.0, 0.6, 0.01, 800, 150, 0.1, 100.0)
HEADS = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from tocsin.balance.planners.conclusion import make_plan
from tocsin.balance.model.plan import PlanStatus, Reason

@dataclass(frozen=True)
class Heads:
    name: ClassVar[str] = "heads in turn"

    def plan(self, problem):
        turns = np.arange(problem.workload.subscribers, dtype=np.int32) % problem.workload.brokers
        return make_plan(problem, self.name, PlanStatus.BALANCED, turns, Reason.SHUFFLE)
"""


def plan(planner: str, **changes: float) -> PlanRow:
    return msgspec.structs.replace(GSH, planner=planner, **changes)


def instance(*plans: PlanRow) -> list[dict[str, PlanRow]]:
    return list(claims.by_instance(plans))


@pytest.mark.slow
def test_the_quick_version_leaves_a_report_of_every_planner(tocsin: Program) -> None:
    ended = tocsin("experiment", "scale", "--quick", "--out", "run")
    assert ended.status == 0
    assert ended.out.splitlines()[-1] == "The report is run/report.html"
    assert ended.out.splitlines()[0] == (
        "A small run, with 3,000 subscribers at most, not 10,000 to 1,000,000: "
        "claims made for the full size are not judged."
    )
    with Path("run/plans.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["planner"] for row in rows} == {"ldm", "sdm", "gsh", "migrate", "shuffle", "migrate to gsh"}
    assert all(float(row["after"]) >= float(row["bound"]) for row in rows)
    assert {path.name for path in Path("run/figures").iterdir()} == {
        f"scale-{name}.{ending}" for name in ("quality", "cost") for ending in ("svg", "png")
    }


@pytest.mark.slow
def test_a_policy_of_one_s_own_is_measured_beside_ours(tocsin: Program) -> None:
    Path("scale_policy.py").write_text(HEADS, encoding="utf-8")
    assert tocsin("experiment", "scale", "--quick", "--policy", "scale_policy:Heads", "--out", "run").status == 0
    assert ",heads in turn," in Path("run/plans.csv").read_text(encoding="utf-8")


def test_the_sizes_are_those_that_were_asked_for() -> None:
    assert {size.brokers for size in SIZES} >= {5, 100}
    assert {size.subscribers for size in SIZES} >= {10_000, 1_000_000}
    assert len(Scale().cells()) == len(set(Scale().cells())) == len(SIZES)


def test_every_planner_must_lower_load_and_cov() -> None:
    assert claims.lowers(instance(GSH)).holds is Holds.YES
    assert claims.lowers(instance(GSH, plan("ldm", after=300.0))).holds is Holds.PARTLY
    assert claims.lowers(instance(plan("ldm", cov_after=0.7))).holds is Holds.NO


def test_similar_is_within_a_tenth() -> None:
    assert claims.similar(instance(plan("ldm"), plan("sdm", after=115.0))).holds is Holds.YES
    apart = claims.similar(instance(plan("ldm"), plan("sdm", after=90.0)))
    assert apart.holds is Holds.NO
    assert "pulls again" in apart.why


def test_a_shuffle_must_end_lower_and_move_more() -> None:
    ldm = plan("ldm", after=120.0, moved=200)
    assert claims.greedy_lower(instance(GSH, ldm)).holds is Holds.YES
    assert claims.greedy_costs(instance(GSH, ldm)).holds is Holds.YES
    assert claims.greedy_lower(instance(GSH, plan("ldm", after=109.0))).holds is Holds.NO
    assert claims.greedy_costs(instance(GSH, plan("ldm", moved=700))).holds is Holds.NO


def test_fewer_moves_count_only_where_the_load_is_as_low() -> None:
    assert claims.ours_fewer(instance(GSH, plan("migrate to gsh", moved=200))).holds is Holds.YES
    assert claims.ours_fewer(instance(GSH, plan("migrate to gsh", moved=200, after=111.0))).holds is Holds.NO
    assert claims.ours_lower(instance(GSH, plan("shuffle", after=105.0))).holds is Holds.YES


@pytest.mark.parametrize(
    "claim", [claims.similar, claims.greedy_lower, claims.greedy_costs, claims.ours_lower, claims.ours_fewer]
)
def test_what_was_not_run_is_not_judged(claim) -> None:  # type: ignore[no-untyped-def]
    assert claim(instance(GSH)).holds is Holds.UNKNOWN

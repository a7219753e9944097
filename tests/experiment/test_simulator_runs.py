"""The experiments that run on the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.experiment.courses import course
from tocsin.balance.policies import planner
from tocsin.experiment.directory import Directory
from tocsin.experiment.latency.rows import Delay
from tocsin.experiment.latency.study import Latency, mean_outgoing
from tocsin.experiment.schemes import LDM, NONE, OURS, above, papers_above, scheme
from tocsin.experiment.series.course import RunKey, courses
from tocsin.experiment.series.simulator import policy, simulate_run
from tocsin.experiment.simulation.sections import sections
from tocsin.experiment.simulation.study import ALPHAS, BETAS, Thousands
from tocsin.simulate.scenario import (
    BackendSubscriptions,
    InitialLocations,
    Scenario,
    ScenarioBroker,
    ScenarioChannel,
    ScenarioRates,
    SubscriptionChanges,
    Visits,
)
from tocsin.simulate.scenarios.paper import Paper, paper

TINY = Paper(subscribers=60, backend_subscriptions=3, seconds=120.0, subscribing=40.0)


def quiet(doing: str, part: float) -> None:
    """Progress that nobody looks at."""


def test_a_scheme_is_the_same_to_the_simulator() -> None:
    made = policy(above(LDM, 5.0))
    assert (made.placement, made.migration, made.balancing) == ("nearest", "ldm", True)
    assert (made.thresholds.alpha, made.thresholds.beta, made.thresholds.theta) == (0.15, 5.0, 5.0)
    assert not policy(above(NONE, 5.0)).balancing


def test_a_planner_ends_at_the_alpha_at_which_the_controller_begins() -> None:
    made = policy(LDM.at("LDM α=0.05", alpha=0.05)).planners()
    assert made.migration == planner("ldm", alpha=0.05)
    assert policy(OURS).planners().migration == planner("migrate")


@pytest.mark.slow
def test_moves_that_are_recorded_are_those_that_were_decided() -> None:
    record = simulate_run(paper(TINY, 1), LDM, 1, quiet)
    assert record.moves == sum(decision.moves for decision in record.decisions) > 0


def test_nobody_is_moved_without_balancing() -> None:
    record = simulate_run(paper(TINY, 1), NONE, 1, quiet)
    assert (record.moves, sum(record.samples[-1].subscribers)) == (0, 60)


def test_what_brokers_have_to_send_is_known_beforehand() -> None:
    """A line of 100 bytes every 10 s, 300 in the last quarter, with three holders; another without."""
    scenario = Scenario(
        "hand-made",
        100.0,
        [ScenarioBroker("a"), ScenarioBroker("b")],
        [ScenarioChannel("c", 10.0)],
        BackendSubscriptions([0, 0], [100.0, 900.0]),
        InitialLocations([0.0] * 3, [0.0] * 3),
        logins=Visits([0.0] * 3, [0, 1, 2]),
        subscribes=SubscriptionChanges([1.0] * 3, [0, 1, 2], [0, 0, 0]),
        rates=ScenarioRates([75.0], [0], [300.0]),
    )
    assert mean_outgoing(scenario) == pytest.approx((10 + 30) / 2 * 3 / 2)


@pytest.mark.slow
def test_the_mean_broker_sends_what_it_was_said_to() -> None:
    scenario = paper(TINY, 1)
    record = simulate_run(scenario, NONE, 1, quiet)
    half = record.series("delivered")[len(record.samples) // 2 :]
    assert half.mean() == pytest.approx(mean_outgoing(scenario), rel=0.25)


def test_thresholds_are_swept_and_the_usual_ones_run_once() -> None:
    cells = Thousands(seeds=1).cells()
    assert len(cells) == len(set(cells)) == 7 + len(ALPHAS) - 1 + len(BETAS) - 1
    assert cells[:2] == ["no balancing", "LDM α=0.15"]
    assert {"LDM α=0.05", "LDM β=0"} <= set(cells)


def test_all_is_run_with_five_seeds_and_once_if_it_is_to_be_quick() -> None:
    one, all_ = Thousands(seeds=1).cells(), Thousands().cells()
    assert (all_[: len(one)], len(all_)) == (one, 5 * len(one))
    assert len([cell for cell in Thousands(quick=True).cells() if "seed" in cell]) == 0


def test_the_papers_schemes_act_above_a_load_and_ours_always() -> None:
    assert papers_above(LDM, 5.0) == above(LDM, 5.0)
    assert papers_above(OURS, 5.0) == OURS


def test_the_ratio_of_beta_to_the_mean_load_is_said() -> None:
    runs = {"no balancing": [course([[900.0, 100.0]] * 3)], "LDM α=0.15": [course([[500.0, 500.0]] * 3)]}
    text = sections(runs, ["LDM α=0.15"], [], beta=300.0)[0].text
    assert "LDM acts above β = 300 B/s, which is 0.60 times that" in text


@pytest.mark.slow
def test_the_quick_simulation_compares_all_schemes(tocsin: Program) -> None:
    assert tocsin("experiment", "simulation", "--quick", "--out", "run").status == 0
    report = Path("run/report.html").read_text(encoding="utf-8")
    assert report.index("150 of 10,000 subscribers and 5 of 30 minutes") < report.index("<h2>")
    assert '<td class="yes">' not in report
    runs = courses(Directory(Path("run"), Thousands.tables).data())
    assert {key.scheme for key in runs} == set(Thousands(quick=True).cells())
    assert runs[RunKey("NR", "LDM α=0.15")].highest < runs[RunKey("NR", "no balancing")].highest
    assert {path.stem for path in Path("run/figures").iterdir()} == {
        f"simulation-{name}" for name in ("population", "loads", "compared", "alpha", "beta")
    }


@pytest.mark.slow
def test_the_quick_latency_measures_delays(tocsin: Program) -> None:
    assert tocsin("experiment", "latency", "--quick", "--out", "run").status == 0
    delays = Directory(Path("run"), Latency.tables).data().of(Delay)
    assert {(row.scheme, row.utilisation) for row in delays} == {
        (one, part) for one in ("no balancing", "LDM", "ours") for part in (0.3, 0.7)
    }
    assert all(0 < row.p50 <= row.p99 for row in delays)
    plain = {row.utilisation: row for row in delays if row.scheme == "no balancing"}
    assert plain[0.3].p99 < plain[0.7].p99


def test_a_planner_can_migrate_by_our_thresholds() -> None:
    made = scheme("sdm+gsh"), scheme("multistage")
    assert [(one.title, one.migration) for one in made] == [("SDM+GSH", "sdm"), ("multistage", "multistage")]

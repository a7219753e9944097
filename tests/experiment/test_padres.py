"""The PADRES evaluation: runs end to end in small, and claims are judged by rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from tests.cli.program import Program
from tocsin.apps.stocks.quotes import make_quotes
from tocsin.experiment.catalog import study
from tocsin.experiment.padres import recorder
from tocsin.experiment.padres.accuracy import accuracy
from tocsin.experiment.padres.clusters import claims as between
from tocsin.experiment.padres.course import OverlayCourse, delay_of, input_of, overhead
from tocsin.experiment.padres.local import claims
from tocsin.experiment.padres.local.names import MAIN, UNBALANCED, samples_run, trigger_run
from tocsin.experiment.padres.rows import EdgeRow, EstimateRow, MessageRow
from tocsin.experiment.padres.run import QuoteRun, RunSettings
from tocsin.experiment.padres.scale import report
from tocsin.experiment.padres.scenario import ScenarioSize, local_scenario
from tocsin.experiment.verdict import Holds
from tocsin.overlay import dialogue, messages

POWERS = {"B1": 1, "B2": 2, "B3": 4, "B4": 10}


def edge(
    seconds: float, broker: str, load: float = 0.5, *, run: str = MAIN, delivery: float = 0.1, cluster: str = "B0"
) -> EdgeRow:
    subscribers = 100 * POWERS.get(broker, 1)
    return EdgeRow(
        run, seconds, broker, cluster, load, 0.3, 0.03, 0.5, 0.1, "OK", subscribers, 0, 100, delivery
    )  # fmt: skip


def course(loads: dict[float, dict[str, float]], run: str = MAIN) -> OverlayCourse:
    return OverlayCourse.of(
        [edge(at, name, load, run=run) for at, some in loads.items() for name, load in some.items()], run
    )


def even(since: float, until: float, load: float = 0.5) -> dict[float, dict[str, float]]:
    return {float(at): dict.fromkeys(POWERS, load) for at in range(int(since), int(until) + 1, 10)}


def test_a_run_converges_when_it_stays_within_the_threshold_and_not_in_passing() -> None:
    apart = {**dict.fromkeys(POWERS, 0.5), "B1": 0.9}
    calm = even(1100, 3000)
    assert claims.converges(course(calm)).holds is Holds.YES
    late = {**calm, **{at: apart for at in calm if 1900 <= at < 2000}}
    verdict = claims.converges(course(late))
    assert (verdict.holds, verdict.measured) == (Holds.NO, "from 2,000 s on")
    never = {**calm, **{at: apart for at in calm if at > 2900}}
    assert claims.converges(course(never)).measured == "not by then"
    assert claims.converges(OverlayCourse({})).holds is Holds.UNKNOWN


def test_an_imbalance_that_does_not_arise_is_not_judged_to_be_gone() -> None:
    calm = even(1100, 4000)
    verdict = claims.converges_again(course(calm))
    assert (verdict.holds, "input 0.000" in verdict.measured) == (Holds.UNKNOWN, True)
    assert "no imbalance arises" in verdict.why
    apart = {**dict.fromkeys(POWERS, 0.5), "B1": 0.9}
    gone = {**calm, **{at: apart for at in calm if 3010 <= at < 3200}}
    verdict = claims.converges_again(course(gone))
    assert (verdict.holds, verdict.measured) == (Holds.YES, "from 3,200 s on")
    late = {**calm, **{at: apart for at in calm if 3010 <= at < 3600}}
    assert claims.converges_again(course(late)).holds is Holds.NO


def test_b1_must_have_been_overloaded_and_then_empty() -> None:
    filling = {**even(100, 3000), **{at: {**dict.fromkeys(POWERS, 0.3), "B1": 1.0} for at in (800.0, 900.0)}}
    assert claims.empties(course(filling)).holds is Holds.NO

    def emptied(left: int, at: float) -> OverlayCourse:
        rows = [edge(each, name, load) for each, some in filling.items() for name, load in some.items()]
        rows.append(replace(edge(at, "B1", 0.02), subscribers=left))
        return OverlayCourse.of(sorted(rows, key=lambda row: row.seconds), MAIN)

    assert claims.empties(emptied(0, 1390.5)).holds is Holds.YES
    assert claims.empties(emptied(0, 1150.5)).holds is Holds.PARTLY
    assert claims.empties(emptied(34, 1390.5)).holds is Holds.PARTLY
    assert claims.empties(emptied(60, 1390.5)).holds is Holds.NO


def test_subscribers_must_be_in_proportion_to_power() -> None:
    assert claims.proportional(course(even(100, 3000))).holds is Holds.YES
    flat = [replace(edge(100.0, name), subscribers=100) for name in POWERS]
    assert claims.proportional(OverlayCourse.of(flat, MAIN)).holds is Holds.NO


def test_every_threshold_is_judged_by_the_input() -> None:
    def run(trigger: float, apart: float) -> list[EdgeRow]:
        name = MAIN if trigger == 0.1 else trigger_run(trigger)
        loads = {at: {"B1": 0.5, "B2": 0.5 + apart} for at in even(1100, 2000)}
        return [edge(at, broker, load, run=name) for at, some in loads.items() for broker, load in some.items()]

    assert claims.thresholds([*run(0.1, 0.05), *run(0.2, 0.15)]).holds is Holds.YES
    assert claims.thresholds([*run(0.1, 0.05), *run(0.2, 0.25)]).holds is Holds.PARTLY
    assert claims.thresholds(run(0.1, 0.05)).holds is Holds.UNKNOWN
    for_a_minute = [
        replace(row, input=0.9) if row.broker == "B2" and 1800 < row.seconds < 1870 else row for row in run(0.2, 0.15)
    ]
    verdict = claims.thresholds([*run(0.1, 0.05), *for_a_minute])
    assert (verdict.holds, "up to 0.400 for a minute" in verdict.measured) == (Holds.PARTLY, True)


def test_all_metrics_must_be_within_the_threshold_at_all_times() -> None:
    calm = even(1100, 3000)
    assert claims.within_threshold(course(calm)).holds is Holds.YES
    apart = {**calm, **{at: {**calm[at], "B1": 0.8} for at in calm if 2000 < at < 2070}}
    verdict = claims.within_threshold(course(apart))
    assert (verdict.holds, "input 0.015 (up to 0.300 for a minute)" in verdict.measured) == (Holds.PARTLY, True)


def estimate(estimated: float, actual: float, run: str = MAIN, joining: bool = False) -> EstimateRow:
    return EstimateRow(
        run, 100.0, "B2", "offloading broker", "B1" if joining else "B2", "input", 3, joining, estimated, actual
    )


def test_estimates_while_subscribers_join_are_not_counted() -> None:
    rows = [estimate(0.48, 0.5), estimate(0.5, 0.5), estimate(0.1, 0.9, joining=True)]
    assert claims.estimated(rows).holds is Holds.YES
    assert claims.estimated([estimate(0.3, 0.5)]).holds is Holds.NO
    assert accuracy([estimate(0.0, 0.001)]) is None


def test_samples_must_first_help_and_then_harm() -> None:
    found = {1: 0.3, 10: 0.45, 50: 0.49, 200: 0.4}
    rows = [estimate(one, 0.5, MAIN if samples == 50 else samples_run(samples)) for samples, one in found.items()]
    assert claims.sampled(rows).holds is Holds.YES
    rows[-1] = estimate(0.5, 0.5, samples_run(200))
    assert claims.sampled(rows).holds is Holds.PARTLY


def test_overhead_is_a_part_of_all_messages_in_a_span() -> None:
    rows = [MessageRow(MAIN, at, 1000, 10.0, 0, 0, "") for at in (10.0, 20.0, 30.0)]
    assert overhead(rows, MAIN, 10.0, 30.0) == 0.01
    assert overhead(rows, "another", 0.0, 30.0) == 0.0


def test_every_message_of_the_overlay_is_a_balancers_a_subscriptions_or_a_publications() -> None:
    said = {*get_args(messages.FromLink), *get_args(messages.Body), *get_args(dialogue.ToSubscriber)}
    others = {messages.Control, messages.Sync, messages.Interrupted, messages.Restored, dialogue.Gap, dialogue.Refused}
    publications = {messages.Routed, messages.Mark, dialogue.Note}
    counted = [*recorder._BALANCING, *recorder._SUBSCRIBING]
    assert len(counted) == len(set(counted))
    assert set(counted) - {dialogue.Unsubscribe} == said - others - publications
    assert set(get_args(messages.SessionBody)) <= set(recorder._BALANCING)


def test_load_must_diminish_along_the_chain() -> None:
    def chain(*loads: float) -> OverlayCourse:
        rows = [
            edge(at, f"B{number}1", load, cluster=f"B{number}0")
            for at in (7500.0, 7600.0)
            for number, load in enumerate(loads, 1)
        ]
        return OverlayCourse.of(rows, MAIN)

    assert between.diminishes(chain(0.5, 0.4, 0.3, 0.2)).holds is Holds.YES
    assert between.diminishes(chain(0.5, 0.2, 0.3, 0.2)).holds is Holds.NO


@pytest.mark.parametrize("metric", ["input", "output", "delay"])
def test_clusters_have_converged_when_all_their_metrics_are_even(metric: str) -> None:
    def chain(differs: bool) -> OverlayCourse:
        rows = [
            edge(float(at), f"B{number}1", cluster=f"B{number}0") for at in range(4000, 7970, 30) for number in (1, 2)
        ]
        apart = {"input": 0.7, "output": 0.5, "delay": 0.05}[metric]
        if differs:
            rows = [replace(row, **{metric: apart}) if row.broker == "B21" else row for row in rows]
        return OverlayCourse.of(rows, MAIN)

    assert between.converges(chain(differs=False), []).holds is Holds.YES
    found = between.converges(chain(differs=True), [])
    assert found.holds is Holds.PARTLY
    assert f"{metric} never" in found.measured


def test_estimates_are_judged_with_their_deviation() -> None:
    rows = [estimate(0.5, 0.5), estimate(0.5, 0.5), estimate(0.5, 0.5), estimate(0.38, 0.5)]
    found = claims.estimated(rows)
    assert "94.0% without" in found.measured
    assert found.holds is Holds.NO


def test_more_edges_must_be_quicker_and_far_clusters_no_quicker() -> None:
    def rows(kind: object, delays: dict[int, float]) -> list[EdgeRow]:
        return [edge(100.0, "B1", run=kind(number), delivery=delay) for number, delay in delays.items()]  # type: ignore[operator]

    assert report.edges_scale(rows(report.edges_run, {2: 0.3, 4: 0.2, 8: 0.1})).holds is Holds.YES
    assert report.edges_scale(rows(report.edges_run, {2: 0.3, 4: 0.2, 8: 0.25})).holds is Holds.PARTLY
    assert report.no_gain(rows(report.clusters_run, {4: 0.1, 5: 0.1})).holds is Holds.YES
    assert report.no_gain(rows(report.clusters_run, {4: 0.1, 5: 0.05})).holds is Holds.NO
    assert report.no_gain(rows(report.clusters_run, {1: 0.1})).holds is Holds.UNKNOWN


@pytest.mark.slow
def test_a_small_run_balances_and_every_subscriber_gets_what_it_wants() -> None:
    size = ScenarioSize(subscribers=120, publishers=10, joining_until=40.0, doubled_at=200.0, seconds=240.0)
    scenario = local_scenario(1, make_quotes(1, days=200), size)
    run = QuoteRun(MAIN, scenario, 1, RunSettings())
    run.run(lambda doing, part: None)
    rows = [row for row in run.recorder.rows if isinstance(row, EdgeRow)]
    last = OverlayCourse.of(rows, MAIN).moments[240.0]
    assert sum(row.subscribers for row in last) == 120
    assert sum(row.subscribers > 0 for row in last) > 1
    # Whoever joined before the first publication has had just what matches its filter.
    published = list(scenario.publications())
    for subscriber in scenario.subscribers:
        wanted = sum(subscriber.filter.matches(each.content) for each in published if each.at > subscriber.at + 1)
        given = run.system.subscribers[subscriber.name].given  # type: ignore[attr-defined]
        waiting = sum(subscriber.filter.matches(each.content) for each in published if each.at > 239)
        since = sum(subscriber.filter.matches(each.content) for each in published if each.at > subscriber.at - 1)
        assert wanted - waiting <= given <= since
    # Without balancing all stay at B1, which can match a tenth of what comes.
    unbalanced = QuoteRun(UNBALANCED, scenario, 1, RunSettings(balancing=False)).run(lambda doing, part: None)
    alone = OverlayCourse.of([row for row in unbalanced.rows if isinstance(row, EdgeRow)], UNBALANCED)
    for value in (input_of, delay_of):
        balanced = OverlayCourse.of(rows, MAIN).difference(value, 200.0, 240.0)
        assert balanced < alone.difference(value, 200.0, 240.0) / 10


@pytest.mark.parametrize("name", ["padres-local", "padres-global", "padres-scale"])
@pytest.mark.slow
def test_a_quick_version_runs_and_judges_nothing_of_full_size(tocsin: Program, name: str) -> None:
    done = tocsin("experiment", name, "--quick", "--out", "run")
    assert done.status == 0, done.err
    assert "A small run, with" in done.out
    assert Path("run/edges.csv").read_text(encoding="utf-8").startswith("cell,run,seconds,broker")
    assert list(Path("run/figures").glob("padres-*.svg"))
    judged = re.findall(rf"^ *({'|'.join(Holds)})  +\S", done.out, re.MULTILINE)
    assert len(judged) >= 3
    assert set(judged) <= {Holds.UNJUDGED, Holds.UNKNOWN}


def test_a_file_that_has_no_quotes_is_refused(tocsin: Program) -> None:
    Path("quotes.parquet").write_text("nothing", encoding="utf-8")
    refused = tocsin("experiment", "padres-local", "--quick", "--quotes", "quotes.parquet", "--out", "run")
    assert refused.status == 1
    assert "has no quotes that can be read" in refused.err


def test_settings_tell_runs_apart_by_what_is_in_the_file(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    assert study("padres-local", quotes=one).settings != study("padres-local", quotes=other).settings

"""Two balancers by one ruler: what it counts, what follows from its rows, and both at work on a small set-up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.cli.program import Program
from tocsin.apps.stocks.quotes import make_quotes
from tocsin.balance.model.loads import Loads
from tocsin.coordinator.events import Drain
from tocsin.experiment.balancers.claims import verdicts
from tocsin.experiment.balancers.matches import MatchedPublications
from tocsin.experiment.balancers.names import BALANCERS, MATCHING, NONE, PADRES, SETUPS, TOCSIN, UNEQUAL
from tocsin.experiment.balancers.outcome import LoadCourse, outcomes, seconds_to_balance
from tocsin.experiment.balancers.recording import LoadRecorder, bound_rows
from tocsin.experiment.balancers.rows import BalancingRow, BoundRow, BrokerRow
from tocsin.experiment.balancers.study import TwoBalancers
from tocsin.experiment.balancers.systems import MESSAGES_OF_A_MOVE, CoordinatedSystem
from tocsin.experiment.balancers.utilisation import NOWHERE, utilise
from tocsin.experiment.padres.scenario import QuoteScenario, ScenarioSize, local_scenario
from tocsin.experiment.study import StudyData
from tocsin.experiment.verdict import Holds
from tocsin.simulate.system import System

QUOTES = make_quotes(3, symbols=10, days=200)
TINY = ScenarioSize(subscribers=60, publishers=10, joining_until=40.0, doubled_at=200.0, seconds=300.0)


@pytest.fixture(scope="module")
def scenario() -> QuoteScenario:
    return local_scenario(5, QUOTES, TINY)


@pytest.fixture(scope="module")
def matched(scenario: QuoteScenario) -> MatchedPublications:
    return MatchedPublications.of(scenario)


def test_a_publication_matches_whose_filter_it_fulfils(scenario: QuoteScenario, matched: MatchedPublications) -> None:
    published = list(scenario.publications())
    assert len(matched) == len(published)
    for at in range(0, len(published), 97):
        expected = [n for n, one in enumerate(scenario.subscribers) if one.filter.matches(published[at].content)]
        assert matched.who[matched.indptr[at] : matched.indptr[at + 1]].tolist() == expected
        assert matched.times[at] == published[at].at


def test_signatures_as_be_subscriptions_give_the_loads_that_are_counted_one_by_one(
    scenario: QuoteScenario, matched: MatchedPublications
) -> None:
    span = matched.between(50.0, 150.0)
    bandwidths = np.array([site.machine.bandwidth for site in scenario.edges])
    workload = span.workload(TINY.subscribers, bandwidths * 100.0)
    assert workload.subscriptions < len(span)
    for seed in range(5):
        assignment = np.random.default_rng(seed).integers(0, 4, TINY.subscribers).astype(np.int16)
        done = utilise(span, 100.0, assignment, [site.machine for site in scenario.edges], 0.01)
        assert done.traffic == pytest.approx(Loads(workload, assignment.astype(np.int32)).utilisation)


def test_who_has_not_joined_weighs_nothing(scenario: QuoteScenario, matched: MatchedPublications) -> None:
    span, joined = matched.between(50.0, 150.0), 25
    bandwidths = np.array([site.machine.bandwidth for site in scenario.edges])
    assignment = np.where(np.arange(TINY.subscribers) < joined, 2, NOWHERE).astype(np.int16)
    done = utilise(span, 100.0, assignment, [site.machine for site in scenario.edges], 0.01)
    loads = Loads(span.workload(joined, bandwidths * 100.0), assignment[:joined].astype(np.int32))
    assert done.traffic == pytest.approx(loads.utilisation)
    assert done.subscribers.tolist() == [0, 0, joined, 0]
    assert done.matching[2] == pytest.approx(done.received[2] / 100.0 * joined * 0.01 / 400)


def test_what_matching_takes_is_load_that_nobody_shares(matched: MatchedPublications) -> None:
    span = matched.between(50.0, 150.0)
    plain, weighed = (span.workload(TINY.subscribers, np.ones(4), own) for own in (0, 7))
    assert (weighed.own - plain.own).tolist() == [7] * TINY.subscribers
    everybody = np.zeros(TINY.subscribers, np.int32)
    more = Loads(weighed, everybody).total[0] - Loads(plain, everybody).total[0]
    assert more == 2 * 7 * TINY.subscribers


def test_a_span_without_publications_is_no_load(scenario: QuoteScenario, matched: MatchedPublications) -> None:
    nothing = matched.between(0.0, 1.0)
    assert len(nothing) == 0
    assert nothing.workload(TINY.subscribers, np.ones(4)).subscriptions == 0
    assignment = np.zeros(TINY.subscribers, np.int16)
    assert (
        utilise(nothing, 1.0, assignment, [site.machine for site in scenario.edges], 0.01).traffic.tolist() == [0.0] * 4
    )


def test_everybody_joins_where_the_set_up_says_and_stays_unless_moved(
    scenario: QuoteScenario, matched: MatchedPublications
) -> None:
    seen = list(CoordinatedSystem(scenario, matched, balancing=False).run())
    assert len(seen) == 30
    for step, assignment in enumerate(seen, 1):
        joined = [each.at <= 10.0 * step for each in scenario.subscribers]
        assert (assignment == 0).tolist() == joined
        assert set(assignment.tolist()) <= {0, NOWHERE}


def test_the_coordinator_lowers_the_highest_traffic_and_comes_near_the_bound(
    scenario: QuoteScenario, matched: MatchedPublications
) -> None:
    data = _run(scenario, matched, {NONE: {"balancing": False}, TOCSIN: {}})
    first, second = data.of(BoundRow)
    assert (first.begins, first.settles, first.until) == (0.0, scenario.joined_at, TINY.doubled_at)
    assert (second.begins, second.settles, second.until) == (TINY.doubled_at, TINY.doubled_at, TINY.seconds)
    found = {(one.balancer, one.half.until): one for one in outcomes(data)}
    for until in (TINY.doubled_at, TINY.seconds):
        none, ours = found[NONE, until], found[TOCSIN, until]
        assert none.moves == 0
        assert none.ratio > ours.ratio >= 1.0
        assert ours.traffic < none.traffic / 2


def test_whoever_is_moved_before_it_was_seen_where_it_joined_has_moved(
    scenario: QuoteScenario, matched: MatchedPublications
) -> None:
    recorder = LoadRecorder(UNEQUAL, TOCSIN, scenario, matched)
    nobody = np.full(TINY.subscribers, NOWHERE, np.int16)
    assignment = nobody.copy()
    assignment[:3] = 0, 1, 1
    assert (recorder.count_moves(nobody), recorder.count_joins(nobody)) == (0, 0)
    assert (recorder.count_moves(assignment), recorder.count_joins(assignment)) == (2, 3)
    recorder.broker_rows(assignment)
    assert recorder.balancing_row(assignment, 10, 1).moves == 2
    assert recorder.count_moves(assignment) == 0


def _run(scenario: QuoteScenario, matched: MatchedPublications, systems: dict[str, dict[str, bool]]) -> StudyData:
    brokers: list[BrokerRow] = []
    balancing: list[BalancingRow] = []
    for name, options in systems.items():
        recorder = LoadRecorder(UNEQUAL, name, scenario, matched)
        for assignment in CoordinatedSystem(scenario, matched, **options).run():
            brokers += recorder.broker_rows(assignment)[1]
            balancing.append(recorder.balancing_row(assignment, 100, 1))
    bounds = list(bound_rows(UNEQUAL, scenario, matched))
    return StudyData({BrokerRow: brokers, BalancingRow: balancing, BoundRow: bounds})


HALF = BoundRow(setup=UNEQUAL, begins=0.0, settles=100.0, since=300.0, until=400.0, signatures=9, bound=0.2)


def _course(*highest: float) -> LoadCourse:
    """Ten seconds each: one of two brokers has this traffic, and both together 1."""
    rows = [
        [_broker(10.0 * step, "B1", load), _broker(10.0 * step, "B2", 1 - load)] for step, load in enumerate(highest, 1)
    ]
    return LoadCourse([10.0 * step for step in range(1, len(highest) + 1)], rows)


def _broker(seconds: float, broker: str, traffic: float, balancer: str = PADRES, matching: float = 0.5) -> BrokerRow:
    return BrokerRow(UNEQUAL, balancer, seconds, broker, 10, 5, 20, traffic, matching)


def test_balanced_is_when_it_stays_within_a_tenth_of_its_end() -> None:
    # Averages over a minute are still above for four rows after the twentieth: 0.9, 0.9, 0.5, … of six.
    course = _course(*[0.9] * 20, *[0.5] * 20)
    assert seconds_to_balance(HALF, course) == 250.0 - 100.0


def test_what_was_balanced_before_the_last_joined_took_no_time() -> None:
    assert seconds_to_balance(HALF, _course(*[0.9] * 3, *[0.5] * 37)) == 0.0


def test_what_still_goes_up_and_down_has_not_come_to_rest() -> None:
    assert seconds_to_balance(HALF, _course(*[0.5] * 33, *[0.9] * 6, 0.5)) is None


def _data(traffic: dict[str, float], matching: float = 0.5, moves: dict[str, int] | None = None) -> StudyData:
    steps = range(10, 410, 10)
    brokers = [
        _broker(step, broker, load, name, matching)
        for name, highest in traffic.items()
        for step in steps
        for broker, load in (("B1", highest), ("B2", 0.2))
    ]
    balancing = [
        BalancingRow(UNEQUAL, name, step, (moves or {}).get(name, 0) if step == 10 else 0, 1000, 2)
        for name in traffic
        for step in steps
    ]
    return StudyData({BrokerRow: brokers, BalancingRow: balancing, BoundRow: [HALF]})


def test_claims_hold_where_the_rows_say_so() -> None:
    traffic = {NONE: 0.9, PADRES: 0.25, TOCSIN: 0.21, MATCHING: 0.3}
    found = verdicts(_data(traffic, moves={PADRES: 30, TOCSIN: 10, MATCHING: 20}))
    assert [one.holds for one in found] == [Holds.YES] * 8


def test_and_do_not_where_they_do_not() -> None:
    traffic = {NONE: 0.9, PADRES: 0.5, TOCSIN: 0.6, MATCHING: 0.5}
    found = verdicts(_data(traffic, matching=1.2, moves={PADRES: 1, TOCSIN: 2, MATCHING: 2}))
    assert [one.holds for one in found] == [*[Holds.NO] * 6, Holds.YES, Holds.YES]


def test_without_rows_nothing_is_said() -> None:
    assert {one.holds for one in verdicts(StudyData({}))} == {Holds.UNKNOWN}


def test_a_move_takes_no_more_messages_than_are_counted() -> None:
    system = System(["a", "b"])
    system.advance(2)
    for number in range(6):
        system.join(f"p{number}")
        system.subscribe(f"p{number}", "c", v=number)
    system.advance(3)
    moving = sum(stay.session is not None for stay in system.brokers["a"].core.holdings.stays.values())
    counted: Counter[str] = Counter()
    system.network.watch = lambda message, connections: counted.update({type(message).__name__: connections})
    system.ask(Drain(0, "a"))
    system.advance(5)
    regular = counted["Beat"] + counted["Presence"] + counted["Report"]
    assert 0 < (counted.total() - regular) / moving <= MESSAGES_OF_A_MOVE


@pytest.mark.slow
def test_both_balancers_are_in_one_report(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ScenarioSize(subscribers=40, publishers=8, joining_until=30.0, doubled_at=100.0, seconds=150.0)
    monkeypatch.setattr(TwoBalancers, "small", small)
    ended = tocsin("experiment", "balancers", "--quick", "--out", "run")
    assert ended.status == 0, ended.err
    report = Path("run/report.html").read_text(encoding="utf-8")
    for name in (*BALANCERS, *SETUPS):
        assert name in report
    seen = {tuple(line.split(",")[1:3]) for line in Path("run/balancing.csv").read_text().splitlines()[1:]}
    assert len(seen) == len(BALANCERS) * len(SETUPS)
    assert Path("run/figures/balancers.svg").exists()

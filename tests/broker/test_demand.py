"""For those who are away nothing is pulled, and when they are back nothing is missing."""

from __future__ import annotations

import pytest

from tests.broker.world import Bench, notes, told
from tocsin.broker import events
from tocsin.model import control, coordination
from tocsin.model.coordination import AWAY_SECONDS
from tocsin.model.trust import Trust


@pytest.fixture
def bench() -> Bench:
    """Ann has had the first execution, and has lost her connection."""
    bench = Bench()
    bench.connect()
    bench.serve("ann", 1, bench.held())
    bench.execute()
    bench.do(events.Closed(1))
    return bench


def found(bench: Bench) -> control.Executed | control.Behind:
    """The notice of an execution that has found something for everybody."""
    (notice,) = bench.cluster.execute("c", lambda be: True).values()
    return notice


def pulls(bench: Bench) -> list[control.Pull]:
    """What is asked for when something is found."""
    notice = found(bench)
    did = bench.tell(notice)
    bench.answer_data(did)
    return list(told(did, control.Pull))


def test_somebody_who_was_there_just_now_is_expected(bench: Bench) -> None:
    bench.wait(AWAY_SECONDS - 1)
    assert pulls(bench)
    assert [e for _, e in notes(bench.login("ann", 2, {1: 1}), 2)] == [2]
    assert bench.core.cache_figures.hits == 1


def test_for_somebody_who_is_away_nothing_is_pulled(bench: Bench) -> None:
    bench.wait(AWAY_SECONDS + 1)
    before = bench.core.load(bench.now)[0]
    assert pulls(bench) == pulls(bench) == []
    assert bench.core.load(bench.now)[0] == before
    assert [e for _, e in notes(bench.login("ann", 2, {1: 1}), 2)] == [2, 3]
    assert [e for _, e in notes(bench.execute(), 2)] == [4]


def test_for_those_who_are_there_everything_is_pulled(bench: Bench) -> None:
    bench.wait(AWAY_SECONDS + 1)
    bench.serve("bob", 2, bench.held(2))
    bench.serve("eve", 3, bench.held(1))
    assert [pull.bes for pull in pulls(bench)] == [[bench.held(1).subscription, bench.held(2).subscription]]
    bench.do(events.Closed(3))
    bench.wait(AWAY_SECONDS + 1)
    assert [pull.bes for pull in pulls(bench)] == [[bench.held(2).subscription]]


def test_the_coordinator_says_how_long_somebody_is_expected(bench: Bench) -> None:
    bench.tell(coordination.Accepted(Trust(), 5.0))
    bench.login("ann", 2)
    bench.do(events.Closed(2))
    bench.wait(6.0)
    assert pulls(bench) == []


def test_whoever_comes_while_a_pull_for_others_is_under_way_misses_nothing(bench: Bench) -> None:
    bench.wait(AWAY_SECONDS + 1)
    bench.serve("bob", 2, bench.held(2))
    notice = found(bench)
    under_way = bench.tell(notice)
    assert told(under_way, control.Pull)[0].bes == [bench.held(2).subscription]
    bench.do(events.Opened(3))
    early = notes(bench.login("ann", 3, {1: 1}), 3)
    late = notes(bench.answer_data(under_way), 3)
    assert [e for _, e in early + late] == [2]
    assert [e for _, e in notes(bench.execute(), 3)] == [3]


def test_whoever_comes_while_a_pull_is_to_be_repeated_misses_nothing(bench: Bench) -> None:
    bench.wait(AWAY_SECONDS + 1)
    bench.serve("bob", 2, bench.held(2))
    notice = found(bench)
    (pull,) = told(bench.tell(notice), control.Pull)
    bench.tell(control.Error("busy", "later", pull.id, retry_after=3.0))
    early = notes(bench.login("ann", 3, {1: 1}), 3)
    late = notes(bench.answer_data(bench.wait(4.0)), 3)
    assert [e for _, e in early + late] == [2]


def test_whoever_is_prepared_for_is_expected(bench: Bench) -> None:
    bench.wait(AWAY_SECONDS + 1)
    assert pulls(bench) == []
    bench.tell(coordination.Prepare("eve", 1, [bench.held(cursor=2)]))
    bench.answer_data()
    assert pulls(bench)
    assert [e for _, e in notes(bench.login("eve", 2, {1: 2}), 2)] == [3]
    bench.do(events.Closed(2))
    assert [e for _, e in notes(bench.login("ann", 3, {1: 1}), 3)] == [2, 3]


def test_after_a_lost_link_nothing_is_pulled_for_those_who_are_away(bench: Bench) -> None:
    bench.wait(AWAY_SECONDS + 1)
    assert pulls(bench) == []
    bench.do(events.Lost("data"))
    did = bench.do(events.Connected("data"))
    assert told(did + bench.answer_data(did), control.Pull) == []
    assert [e for _, e in notes(bench.login("ann", 2, {1: 1}), 2)] == [2]

"""λ is what the data cluster says: right at once on whichever broker, and said to the coordinator by each alike."""

from __future__ import annotations

import pytest

from tests.broker.world import Bench, told
from tocsin.broker import events
from tocsin.model import control, coordination
from tocsin.model.weight import AROUND

PERIOD, TRUE = 10.0, 600.0


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.cluster.size = lambda be, execution: int(TRUE * PERIOD) - AROUND
    bench.connect()
    return bench


def elsewhere(bench: Bench, executions: int) -> None:
    """A BE subscription is held by another broker for a while."""
    bench.cluster.attach("elsewhere", "c", [bench.held().parameters])
    for _ in range(executions):
        bench.wait(PERIOD)
        bench.cluster.execute("c", lambda be: True)


def said(bench: Bench) -> dict[int, float]:
    """What the next report says of rates."""
    return {be: rate for load in told(bench.wait(2.0), coordination.Load) for be, rate in load.rates.items()}


def test_a_broker_that_attaches_knows_the_rate_before_it_has_had_anything(bench: Bench) -> None:
    elsewhere(bench, 60)
    bench.serve("ann", 1, bench.held(cursor=60))
    assert said(bench) == {1: pytest.approx(TRUE)}
    assert bench.core.load(bench.now) == (0.0, 0.0)


def test_a_line_that_is_new_everywhere_has_no_rate_until_it_was_executed_once(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    assert told(bench.wait(PERIOD), coordination.Load)[-1].rates == {}
    bench.execute()
    assert said(bench) == {1: pytest.approx(TRUE)}


def test_what_was_said_last_stands_until_the_next_execution_is_due_and_then_fades(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.wait(PERIOD)
    bench.execute()
    backend = bench.core.holdings.backends[1]
    assert backend.data_rate(2 * PERIOD) == pytest.approx(TRUE)
    assert backend.data_rate(2 * PERIOD + 60.0) == pytest.approx(TRUE / 2.718, rel=0.01)
    assert [load.rates for load in told(bench.wait(3000.0), coordination.Load) if load.rates][-1] == {1: 0.0}
    assert bench.core.holdings.active == {}


def test_a_broker_that_cannot_hear_the_data_cluster_says_nothing_of_rates(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.wait(PERIOD)
    bench.execute()
    assert said(bench) == {1: pytest.approx(TRUE)}
    bench.do(events.Lost("data"))
    elsewhere(bench, 60)
    assert said(bench) == {}
    bench.answer_data(bench.do(events.Connected("data")))
    assert said(bench) == {}
    assert bench.core.holdings.backends[1].data_rate(bench.now) == pytest.approx(TRUE)


def test_a_data_cluster_that_was_started_again_and_knows_nothing_yet_is_not_taken_to_say_none(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.wait(PERIOD)
    bench.execute()
    said(bench)
    bench.do(events.Lost("data"))
    bench.cluster.begin()
    bench.answer_data(bench.do(events.Connected("data")))
    assert said(bench) == {}
    assert bench.core.holdings.backends[1].data_rate(bench.now) == pytest.approx(TRUE)


def test_a_data_cluster_that_says_no_rates_is_understood(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.tell(control.Executed("c", 1, [1, 99]))
    bench.tell(control.Executed("c", 2, [1, 99], "", [5.0, 7.0], 10.0))
    assert said(bench) == {1: 5.0}


def test_a_broker_that_is_behind_goes_on_with_what_it_was_told(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.wait(PERIOD)
    bench.execute()
    bench.tell(control.Behind("c", 2, 2))
    assert said(bench) == {1: pytest.approx(TRUE)}


def test_a_line_keeps_its_rate_under_another_number(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.wait(PERIOD)
    bench.execute()
    bench.do(events.Lost("data"))
    bench.cluster.lose()
    bench.cluster.create("c")
    bench.cluster.begin()
    bench.answer_data(bench.do(events.Connected("data")))
    assert said(bench) == {2: pytest.approx(TRUE)}

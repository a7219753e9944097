"""The data cluster's numbers may change, and come back: a subscription is found under any that it had."""

from __future__ import annotations

import pytest

from tests.broker.world import Bench, told
from tocsin.broker import events
from tocsin.model import control, coordination, subscriber


def restart(bench: Bench) -> None:
    """The data cluster was started again, perhaps on other data."""
    bench.do(events.Lost("data"))
    bench.cluster.begin()
    bench.answer_data(bench.do(events.Connected("data")))


@pytest.mark.parametrize("number", [1, 2])
def test_a_subscription_that_has_its_first_number_again_can_be_given_up_under_any(number: int) -> None:
    bench = Bench()
    bench.connect()
    bench.serve("ann", 1, bench.held())
    copy = bench.cluster.copy()
    bench.cluster.lose()
    bench.cluster.create("c")
    restart(bench)
    assert list(bench.core.holdings.stays["ann"].subscriptions) == [2]
    bench.cluster.restore(copy)
    restart(bench)
    assert list(bench.core.holdings.stays["ann"].subscriptions) == [1]
    kept = told(bench.say(1, subscriber.Unsubscribe(9, number)), coordination.Keep)
    assert [keep.held.subscription for keep in kept if keep.gone and not keep.unasked] == [1]


def test_what_had_another_number_and_has_ended_does_not_come_back_by_what_the_coordinator_said_before() -> None:
    bench = Bench()
    bench.connect()
    bench.cluster.drop("c")
    bench.cluster.create("c")
    bench.serve("ann", 1)
    [kept] = told(bench.answer_data(bench.say(1, subscriber.Subscribe(1, "c", {"v": 1}))), coordination.Keep)
    bench.tell(coordination.Kept(kept.ref))
    bench.cluster.lose()
    bench.cluster.create("c")
    restart(bench)
    assert list(bench.core.holdings.stays["ann"].subscriptions) == [2]
    late = bench.tell(coordination.Prepare("ann", 1, [kept.held]))
    bench.tell(control.Dropped("c", bench.cluster.incarnation("c")))
    bench.cluster.drop("c")
    bench.cluster.create("c")
    for keep in told(bench.did, coordination.Keep):
        bench.tell(coordination.Kept(keep.ref))
    bench.answer_data(late)
    assert bench.core.holdings.stays["ann"].subscriptions == {}

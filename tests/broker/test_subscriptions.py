"""Subscribing and unsubscribing."""

from __future__ import annotations

import pytest

from tests.broker.world import Bench, notes, sent, told
from tocsin.broker import events
from tocsin.broker.limits import BrokerLimits
from tocsin.model import control, coordination, subscriber
from tocsin.model.subscriber import Held


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.connect()
    bench.serve("ann", 1)
    bench.serve("bob", 2)
    return bench


def keep(bench: Bench, session: int, id: int = 1, value: int = 1, live: bool = False) -> coordination.Keep:
    did = bench.say(session, subscriber.Subscribe(id, "c", {"v": value}, live))
    [found] = told(did + bench.answer_data(did), coordination.Keep)
    assert isinstance(found, coordination.Keep)
    return found


def test_subscribed_is_answered_only_when_it_would_outlive_a_crash(bench: Bench) -> None:
    bench.cluster.execution["c"] = 7
    kept = keep(bench, 1)
    assert kept.held == Held(1, "c", {"v": 1}, 7)
    assert sent(bench.did, 1) == []
    assert sent(bench.tell(coordination.Kept(kept.ref)), 1) == [subscriber.Subscribed(1, kept.held)]
    assert notes(bench.execute(), 1) == [(1, 8)]


def test_what_is_found_before_the_answer_comes_after_it(bench: Bench) -> None:
    kept = keep(bench, 1)
    assert notes(bench.execute(), 1) == []
    did = bench.tell(coordination.Kept(kept.ref))
    assert [type(message) for message in sent(did, 1)] == [subscriber.Subscribed, subscriber.Notes]


def test_the_second_who_wants_the_same_needs_no_attach(bench: Bench) -> None:
    bench.tell(coordination.Kept(keep(bench, 1).ref))
    did = bench.say(2, subscriber.Subscribe(1, "c", {"v": 1}))
    assert told(did, control.Attach) == []
    assert len(told(did, coordination.Keep)) == 1


def test_a_line_is_detached_a_while_after_the_last_has_given_it_up(bench: Bench) -> None:
    bench.tell(coordination.Kept(keep(bench, 1).ref))
    [gone] = told(bench.say(1, subscriber.Unsubscribe(2, 1)), coordination.Keep)
    assert gone.gone
    assert notes(bench.execute(), 1) == [(1, 1)]
    assert sent(bench.tell(coordination.Kept(gone.ref)), 1) == [subscriber.Unsubscribed(2, 1)]
    assert notes(bench.execute(), 1) == []
    assert told(bench.wait(9.0), control.Detach) == []
    assert [detach.bes for detach in told(bench.wait(2.0), control.Detach)] == [[1]]


def test_a_line_wanted_again_in_time_is_not_detached(bench: Bench) -> None:
    bench.tell(coordination.Kept(keep(bench, 1).ref))
    [gone] = told(bench.say(1, subscriber.Unsubscribe(2, 1)), coordination.Keep)
    bench.tell(coordination.Kept(gone.ref))
    [again] = told(bench.say(2, subscriber.Subscribe(1, "c", {"v": 1})), coordination.Keep)
    bench.tell(coordination.Kept(again.ref))
    assert told(bench.wait(60.0), control.Detach) == []
    assert notes(bench.execute(), 2) == [(1, 1)]


def test_a_detach_lost_with_the_link_is_said_again(bench: Bench) -> None:
    bench.tell(coordination.Kept(keep(bench, 1).ref))
    [gone] = told(bench.say(1, subscriber.Unsubscribe(2, 1)), coordination.Keep)
    bench.tell(coordination.Kept(gone.ref))
    bench.wait(11.0)
    bench.do(events.Lost("data"))
    assert [detach.bes for detach in told(bench.do(events.Connected("data")), control.Detach)] == [[1]]


def test_a_request_survives_the_loss_of_the_coordinator(bench: Bench) -> None:
    kept = keep(bench, 1)
    bench.do(events.Lost("coordinator"))
    did = bench.do(events.Connected("coordinator"))
    assert [type(message) for message in told(did, coordination.CoordinationMessage)][:2] == [
        coordination.Hello,
        coordination.Keep,
    ]
    assert len(sent(bench.tell(coordination.Kept(kept.ref)), 1)) == 1


@pytest.mark.parametrize("link", ["data", "coordinator"])
def test_a_request_that_is_not_answered_in_time_is_refused(bench: Bench, link: events.LinkName) -> None:
    bench.do(events.Lost(link))
    bench.answer_data(bench.say(1, subscriber.Subscribe(1, "c", {"v": 1})))
    [error] = sent(bench.wait(11.0), 1)
    assert isinstance(error, subscriber.Error)
    assert (error.code, error.id) == ("unavailable", 1)
    did = bench.do(events.Connected(link))
    assert told(did, coordination.Keep) == []


def test_delivery_goes_on_without_the_coordinator(bench: Bench) -> None:
    bench.tell(coordination.Kept(keep(bench, 1).ref))
    bench.do(events.Lost("coordinator"))
    assert notes(bench.execute(), 1) == [(1, 1)]
    bench.say(1, subscriber.Acknowledge({1: 1}))
    bench.wait(20.0)
    bench.do(events.Connected("coordinator"))
    assert [progress.cursors for progress in told(bench.did, coordination.Progress)] == [{"ann": {1: 1}}]


def test_the_data_clusters_refusal_is_passed_on(bench: Bench) -> None:
    [attach] = told(bench.say(1, subscriber.Subscribe(5, "nowhere", {})), control.Attach)
    did = bench.tell(control.Error("not-found", "there is no channel 'nowhere'", attach.id))
    assert sent(did, 1) == [subscriber.Error("not-found", "there is no channel 'nowhere'", 5)]


def test_the_coordinators_refusal_is_passed_on(bench: Bench) -> None:
    kept = keep(bench, 1)
    did = bench.tell(coordination.Refused("conflict", "no", {"ref": kept.ref}))
    assert sent(did, 1) == [subscriber.Error("conflict", "no", 1)]


def test_a_subscriber_may_not_have_too_many() -> None:
    bench = Bench(BrokerLimits(subscriptions=1))
    bench.connect()
    bench.serve("ann", 1)
    keep(bench, 1)
    did = bench.say(1, subscriber.Subscribe(2, "c", {"v": 2}))
    [error] = sent(did, 1)
    assert isinstance(error, subscriber.Error)
    assert error.code == "too-many"
    assert told(did, control.Attach) == []


def test_what_is_being_attached_counts_before_it_is_answered() -> None:
    bench = Bench(BrokerLimits(subscriptions=1))
    bench.connect()
    bench.serve("ann", 1)
    first = bench.say(1, subscriber.Subscribe(1, "c", {"v": 1}))
    second = bench.say(1, subscriber.Subscribe(2, "c", {"v": 2}))
    again = bench.say(1, subscriber.Subscribe(3, "c", {"v": 1}))
    assert [len(told(did, control.Attach)) for did in (first, second, again)] == [1, 0, 1]
    bench.answer_data(first)
    bench.answer_data(again)
    assert told(bench.say(1, subscriber.Subscribe(4, "c", {"v": 1})), coordination.Keep)


def test_at_the_limit_what_is_held_may_be_asked_for_again() -> None:
    bench = Bench(BrokerLimits(subscriptions=1))
    bench.connect()
    bench.serve("ann", 1)
    bench.tell(coordination.Kept(keep(bench, 1).ref))
    assert told(bench.say(1, subscriber.Subscribe(2, "c", {"v": 1})), coordination.Keep)


@pytest.mark.parametrize("value", ["x" * 5000, 3000 * [1], "é" * 2100], ids=["long", "list", "bytes"])
def test_large_parameters_are_refused_before_anything_is_asked(bench: Bench, value: object) -> None:
    did = bench.say(1, subscriber.Subscribe(1, "c", {"v": value}))
    [error] = sent(did, 1)
    assert isinstance(error, subscriber.Error)
    assert error.code == "invalid"
    assert "at most 4,096 are taken" in error.message
    assert told(did, control.Attach) == []


def test_deeply_nested_parameters_are_refused_and_break_nothing(bench: Bench) -> None:
    for depth in (101, 300, 600):
        text = b'{"type":"subscribe","id":1,"channel":"c","parameters":{"v":%b}}' % (b"[" * depth + b"]" * depth)
        did = bench.do(events.Received(1, text))
        [error] = sent(did, 1)
        assert isinstance(error, subscriber.Error)
        assert error.code == "invalid"
    assert told(bench.say(1, subscriber.Subscribe(2, "c", {"v": 1})), control.Attach)


def test_what_is_not_held_cannot_be_given_up(bench: Bench) -> None:
    [error] = sent(bench.say(1, subscriber.Unsubscribe(1, 42)), 1)
    assert isinstance(error, subscriber.Error)
    assert error.code == "not-found"


def test_a_line_nobody_is_known_to_want_is_detached_late_because_its_subscribers_may_come_back(bench: Bench) -> None:
    bench.cluster.answer("a", control.Attach(0, "c", [{"v": 9}]))
    notice = bench.cluster.execute("c", lambda be: True)["a"]
    bench.tell(notice)
    assert told(bench.wait(299.0), control.Detach) == []
    assert [detach.bes for detach in told(bench.wait(2.0), control.Detach)] == [notice.bes]


def test_what_is_asked_for_again_before_it_is_stored_begins_where_it_did(bench: Bench) -> None:
    bench.cluster.execution["c"] = 5
    first = keep(bench, 1)
    bench.do(events.Closed(1))
    bench.execute()
    bench.login("ann", 3)
    assert keep(bench, 3).held.cursor == first.held.cursor == 5


def test_what_a_connection_asked_for_that_is_gone_is_not_made(bench: Bench) -> None:
    asked = bench.say(1, subscriber.Subscribe(1, "c", {"v": 1}))
    bench.do(events.Closed(1))
    assert told(bench.answer_data(asked), coordination.Keep) == []
    assert [detach.bes for detach in told(bench.wait(11.0), control.Detach)] == [[1]]


def test_a_request_from_before_a_reconnection_does_not_bring_back_what_was_dropped(bench: Bench) -> None:
    bench.cluster.drop("c")
    bench.cluster.create("c")
    late = bench.say(1, subscriber.Subscribe(1, "c", {"v": 1}))
    bench.tell(coordination.Kept(keep(bench, 2).ref))
    bench.login("ann", 3)
    kept = keep(bench, 3)
    assert sent(bench.tell(coordination.Kept(kept.ref)), 3) == [subscriber.Subscribed(1, kept.held)]
    bench.cluster.drop("c")
    bench.cluster.create("c")
    given_up = told(bench.answer_data(late), coordination.Keep)
    assert [(each.subscriber, each.gone) for each in given_up] == [("bob", True), ("ann", True)]
    assert notes(bench.execute(), 3) == []

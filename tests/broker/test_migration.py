"""Being prepared for subscribers, handing them over and letting them go."""

from __future__ import annotations

import pytest

from tests.broker.world import Bench, closed, notes, sent, told
from tocsin.broker import actions, events
from tocsin.broker.limits import BrokerLimits
from tocsin.model import control, coordination, subscriber
from tocsin.model.subscriber import Code
from tocsin.model.trust import Trust


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.connect()
    return bench


def test_what_is_found_between_prepare_and_login_is_not_missed(bench: Bench) -> None:
    bench.tell(coordination.Prepare("ann", 1, [bench.held()]))
    assert told(bench.did, coordination.Prepared) == []
    assert told(bench.answer_data(), coordination.Prepared) == [coordination.Prepared("ann", 1)]
    bench.execute()
    assert notes(bench.login("ann", 1), 1) == [(1, 1)]


def test_what_was_found_before_the_lines_were_attached_here_is_caught_up(bench: Bench) -> None:
    bench.serve("bob", 2, bench.held(2))
    bench.cluster.answer("elsewhere", control.Attach(0, "c", [{"v": 1}]))
    for _ in range(3):
        bench.cluster.execute("c", lambda be: be == bench.held().subscription)
    bench.serve("ann", 1)
    bench.tell(coordination.Prepare("eve", 1, [bench.held(cursor=1)]))
    bench.answer_data()
    assert [e for _, e in notes(bench.login("eve", 3), 3)] == [2, 3]


def test_a_prepare_said_again_is_answered_again_and_brings_what_changed(bench: Bench) -> None:
    bench.tell(coordination.Prepare("ann", 1, [bench.held(1)]))
    bench.answer_data()
    bench.tell(coordination.Prepare("ann", 1, [bench.held(2)]))
    assert told(bench.answer_data(), coordination.Prepared) == [coordination.Prepared("ann", 1)]
    [welcome] = sent(bench.login("ann", 1), 1)
    assert isinstance(welcome, subscriber.Welcome)
    assert [held.parameters for held in welcome.subscriptions] == [{"v": 2}]
    did = bench.tell(coordination.Prepare("ann", 1, [bench.held(2)]))
    assert told(did, coordination.Arrived) == [coordination.Arrived("ann", 1)]


def test_a_prepare_that_cannot_be_done_is_answered_with_the_reason(bench: Bench) -> None:
    [attach] = told(bench.tell(coordination.Prepare("ann", 4, [bench.held()])), control.Attach)
    did = bench.tell(control.Error("storage", "the disk is full", attach.id))
    assert told(did, coordination.Unprepared) == [coordination.Unprepared("ann", 4, "the disk is full")]


def test_a_subscriber_handed_over_is_told_and_served_until_it_is_released(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    assert sent(bench.tell(coordination.Handover("ann", 1, "ws://b")), 1) == [subscriber.Moved("ws://b")]
    assert notes(bench.execute(), 1) == [(1, 1)]
    bench.say(1, subscriber.Acknowledge({1: 1}))
    did = bench.tell(coordination.Release("ann", 1))
    assert told(did, coordination.Released) == [coordination.Released("ann", 1, {1: 1})]
    assert closed(did) == [(1, Code.ELSEWHERE)]
    assert closed(bench.login("ann", 2)) == [(2, Code.ELSEWHERE)]


def test_an_absent_subscriber_is_said_to_be(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.do(events.Closed(1))
    for name, stay in [("ann", 1), ("nobody", 3)]:
        did = bench.tell(coordination.Handover(name, stay, "ws://b"))
        assert told(did, coordination.Absent) == [coordination.Absent(name, stay)]


def test_late_messages_are_known_by_their_stay(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(), stay=5)
    assert bench.tell(coordination.Prepare("ann", 4, [])) == []
    did = bench.tell(coordination.Release("ann", 4))
    assert told(did, coordination.Released) == [coordination.Released("ann", 4)]
    assert notes(bench.execute(), 1) == [(1, 1)]


def test_a_subscriber_that_never_comes_leaves_nothing_behind(bench: Bench) -> None:
    bench.tell(coordination.Prepare("ann", 2, [bench.held()]))
    bench.answer_data()
    did = bench.tell(coordination.Release("ann", 2))
    assert told(did, coordination.Released) == [coordination.Released("ann", 2, {1: 0})]
    assert [detach.bes for detach in told(bench.wait(11.0), control.Detach)] == [[1]]


def test_a_release_during_preparation_ends_it(bench: Bench) -> None:
    preparing = bench.tell(coordination.Prepare("ann", 2, [bench.held()]))
    bench.tell(coordination.Release("ann", 2))
    assert told(bench.answer_data(preparing), coordination.Prepared) == []
    assert closed(bench.login("ann", 1)) == [(1, Code.ELSEWHERE)]


def test_a_new_stay_ends_an_old_one_that_was_never_released(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(), stay=1)
    did = bench.tell(coordination.Prepare("ann", 3, [bench.held()]))
    assert closed(did) == [(1, Code.ELSEWHERE)]
    assert told(did, coordination.Prepared) == [coordination.Prepared("ann", 3)]


def test_a_coordinator_that_comes_back_is_told_who_is_here(bench: Bench) -> None:
    bench.serve("ann", 1, stay=4)
    bench.tell(coordination.Prepare("bob", 6, []))
    bench.do(events.Lost("coordinator"))
    did = bench.do(events.Connected("coordinator"))
    [hello] = told(did, coordination.Hello)
    assert hello.serving == [coordination.StayId("ann", 4)]
    assert hello.prepared == [coordination.StayId("bob", 6)]
    assert told(did, coordination.Presence) == [coordination.Presence(["ann"], [])]


def test_the_coordinator_hears_that_who_was_released_is_no_longer_connected_here(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(), stay=4)
    bench.wait(BrokerLimits().report_seconds)
    bench.tell(coordination.Release("ann", 4))
    did = bench.wait(BrokerLimits().report_seconds)
    assert told(did, coordination.Presence) == [coordination.Presence([], ["ann"])]


def test_the_key_of_the_tokens_is_handed_on(bench: Bench) -> None:
    assert bench.tell(coordination.Accepted(Trust())) == [actions.TrustLearned(Trust())]


def test_a_stay_is_for_tokens_of_its_own_registration_alone(bench: Bench) -> None:
    bench.tell(coordination.Prepare("ann", 3, [bench.held()], registration=1))
    bench.answer_data()
    for session, token in enumerate(("ann", "ann#2"), 1):
        assert (session, Code.ELSEWHERE) in closed(bench.login(token, session))
    assert isinstance(sent(bench.login("ann#1", 3), 3)[0], subscriber.Welcome)


def test_a_stay_told_in_parts_knows_its_registration(bench: Bench) -> None:
    bench.tell(coordination.Prepare("ann", 3, [bench.held(1)], more=True, registration=1))
    bench.tell(coordination.Prepare("ann", 3, [bench.held(2)], registration=1))
    bench.answer_data()
    assert isinstance(sent(bench.login("ann#1", 1), 1)[0], subscriber.Welcome)


def test_what_was_read_in_a_stay_is_not_told_of_the_next_of_the_same_name(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.execute()
    bench.say(1, subscriber.Acknowledge({bench.held().subscription: 1}))
    [released] = told(bench.tell(coordination.Release("ann", 1)), coordination.Released)
    assert released.cursors[bench.held().subscription] == 1
    bench.tell(coordination.Prepare("ann", 2, [], registration=1))
    assert told(bench.wait(5), coordination.Progress) == []


def test_who_was_told_of_what_has_ended_elsewhere_is_to_log_in_again_and_ask(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(1), bench.held(2))
    bench.tell(coordination.Prepare("ann", 1, [bench.held(2)]))
    assert closed(bench.did) == [(1, Code.OUTDATED)]
    [welcome] = [each for each in sent(bench.login("ann", 2), 2) if isinstance(each, subscriber.Welcome)]
    assert [held.subscription for held in welcome.subscriptions] == [2]
    bench.tell(coordination.Prepare("ann", 1, [bench.held(2)]))
    assert closed(bench.did) == []


def test_who_is_connected_is_given_all_after_the_cursor_it_was_told_though_more_was_acknowledged_before(
    bench: Bench,
) -> None:
    _go_back_without_data(bench)
    bench.cluster.begin()
    assert notes(bench.answer_data(bench.do(events.Connected("data"))), 2) == [(1, 2), (1, 3)]


def test_what_is_asked_for_once_more_goes_on_after_the_cursor_that_was_told(bench: Bench) -> None:
    _go_back_without_data(bench)
    bench.answer_data(bench.do(events.Connected("data")))
    [keep] = told(bench.say(2, subscriber.Subscribe(7, "c", {"v": 1})), coordination.Keep)
    assert notes(bench.tell(coordination.Kept(keep.ref)), 2) == [(1, 2), (1, 3)]


def test_who_is_away_goes_on_from_what_was_acknowledged_elsewhere(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.execute()
    bench.execute()
    bench.do(events.Closed(1))
    bench.tell(coordination.Prepare("ann", 1, [bench.held(cursor=1)]))
    assert notes(bench.login("ann", 2), 2) == [(1, 2)]


def _go_back_without_data(bench: Bench) -> None:
    """Somebody who has acknowledged two of three executions comes again having had one, and the coordinator, started
    anew, says what it has stored; all this while the data cluster is away."""
    bench.serve("ann", 1, bench.held())
    for _ in range(3):
        bench.execute()
    bench.say(1, subscriber.Acknowledge({1: 2}))
    bench.do(events.Lost("data"))
    bench.login("ann", 2, {1: 1})
    bench.tell(coordination.Prepare("ann", 1, [bench.held(cursor=2)]))

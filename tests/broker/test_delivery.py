"""Who gets which result, and when."""

from __future__ import annotations

import pytest

from tests.broker.world import Bench, notes, result, sent, told
from tocsin.broker import actions, events
from tocsin.broker.limits import BrokerLimits
from tocsin.model import control, coordination, subscriber
from tocsin.model.weight import weight


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.connect()
    return bench


def test_a_result_is_pulled_once_and_given_to_all_in_the_same_bytes(bench: Bench) -> None:
    for session, name in enumerate(["ann", "bob", "cid"], 1):
        bench.serve(name, session, bench.held())
    [notice] = bench.cluster.execute("c", lambda be: True).values()
    did = bench.tell(notice)
    assert [(pull.first, pull.last, pull.bes) for pull in told(did, control.Pull)] == [(1, 1, [1])]
    [sent_to_all] = [action for action in bench.answer_data(did) if isinstance(action, actions.SendMany)]
    assert sent_to_all.sessions == [1, 2, 3]


def test_all_that_a_pull_brings_a_subscriber_is_one_frame(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(1), bench.held(2), bench.held(3))
    did = bench.execute()
    assert len(sent(did, 1)) == 1
    assert notes(did, 1) == [(1, 1), (2, 1), (3, 1)]


def test_only_those_who_get_the_same_share_a_frame(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(1), bench.held(2))
    bench.serve("bob", 2, bench.held(2))
    bench.serve("cid", 3, bench.held(2), bench.held(1))
    shared = [action for action in bench.execute() if isinstance(action, actions.SendMany)]
    assert sorted(action.sessions for action in shared) == [[1, 3], [2]]


def test_who_has_had_more_than_was_pulled_is_not_given_it_again(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.serve("bob", 2, bench.held())
    [notice] = bench.cluster.execute("c", lambda be: True).values()
    pull = bench.tell(notice)
    bench.login("bob", 3, {1: 1})
    did = bench.answer_data(pull)
    assert notes(did, 1) == [(1, 1)]
    assert notes(did, 3) == []
    assert notes(bench.execute(), 3) == [(1, 2)]


def test_what_is_executed_during_a_pull_is_pulled_by_the_next_in_one_go(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    notices = [bench.cluster.execute("c", lambda be: True)["a"] for _ in range(3)]
    first = bench.tell(notices[0])
    assert not told(bench.tell(notices[1]) + bench.tell(notices[2]), control.Pull)
    did = bench.answer_data(first)
    assert [(pull.first, pull.last) for pull in told(did, control.Pull)] == [(2, 3)]
    assert notes(did, 1) == [(1, 1), (1, 2), (1, 3)]


def test_a_pull_of_what_is_new_is_bounded_in_bytes_and_the_next_goes_on_where_it_ended() -> None:
    bench = Bench(BrokerLimits(pull_bytes=1))
    bench.connect()
    bench.serve("ann", 1, bench.held(1), bench.held(2))
    bench.execute()
    bench.do(events.Lost("data"))
    for found in ([1], [2], [1]):
        bench.cluster.execute("c", found.__contains__)
    did = bench.answer_data(bench.do(events.Connected("data")))
    assert [(pull.first, pull.last, pull.most) for pull in told(did, control.Pull)] == [(2, 4, 1), (3, 4, 1), (4, 4, 1)]
    assert notes(did, 1) == [(1, 2), (2, 3), (1, 4)]


def test_whoever_comes_while_a_bounded_pull_is_under_way_misses_nothing_and_gets_nothing_twice() -> None:
    bench = Bench(BrokerLimits(pull_bytes=1))
    bench.connect()
    bench.serve("ann", 1, bench.held(1))
    bench.cluster.attach("a", "c", [bench.held(2).parameters])
    bench.tell(bench.cluster.execute("c", lambda be: True)["a"])
    [first] = told(bench.did, control.Pull)
    bench.tell(bench.cluster.execute("c", lambda be: True)["a"])
    [second] = told(bench.tell(bench.cluster.answer("a", first)), control.Pull)
    bench.tell(bench.cluster.execute("c", lambda be: True)["a"])
    bench.tell(coordination.Prepare("bob", 1, [bench.held(2, cursor=1)]))
    bench.answer_data()
    did = bench.login("bob", 2)
    did += bench.answer_data(bench.tell(bench.cluster.answer("a", second)))
    assert notes(did, 2) == [(2, 2), (2, 3)]
    assert notes(bench.execute(), 2) == [(2, 4)]


def test_who_comes_back_gets_what_was_missed_before_what_is_new(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.execute()
    bench.say(1, subscriber.Acknowledge({1: 1}))
    bench.do(events.Closed(1))
    bench.execute()
    bench.execute()
    assert notes(bench.login("ann", 2), 2) == [(1, 2), (1, 3)]
    assert bench.core.cache_figures.hits > 0
    assert notes(bench.execute(), 2) == [(1, 4)]


def test_what_the_subscriber_knows_counts_more_than_what_it_acknowledged(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.execute()
    bench.execute()
    assert notes(bench.login("ann", 2, {1: 1}), 2) == [(1, 2)]
    assert notes(bench.login("ann", 3, {1: 999}), 3) == []
    assert notes(bench.execute(), 3) == [(1, 3)]


def test_a_cursor_older_than_the_cache_is_served_by_pulling() -> None:
    bench = Bench(BrokerLimits(cache_bytes=0, pull_executions=2))
    bench.connect()
    bench.serve("ann", 1, bench.held())
    for _ in range(5):
        bench.execute()
    assert notes(bench.login("ann", 2, {1: 0}), 2) == [(1, n) for n in range(1, 6)]


def test_a_live_subscription_skips_what_came_while_away_but_not_what_came_while_moving(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(live=True))
    bench.do(events.Closed(1))
    bench.execute()
    assert notes(bench.login("ann", 2), 2) == []
    assert notes(bench.execute(), 2) == [(1, 2)]
    bench.tell(coordination.Prepare("bob", 5, [bench.held(live=True)]))
    bench.execute()
    assert notes(bench.login("bob", 3, {1: 2}), 3) == [(1, 3)]


def test_after_the_data_link_is_back_everything_held_is_attached_and_pulled(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(1), bench.held(2))
    bench.execute()
    bench.do(events.Lost("data"))
    bench.cluster.execute("c", lambda be: be == 1)
    bench.cluster.execute("c", lambda be: be == 2)
    did = bench.do(events.Connected("data"))
    assert len(told(did, control.Attach)) == 1
    assert notes(bench.answer_data(did), 1) == [(1, 2), (2, 3)]


def test_a_pull_that_fails_is_tried_again_and_nothing_newer_comes_before(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    [notice] = bench.cluster.execute("c", lambda be: True).values()
    [pull] = told(bench.tell(notice), control.Pull)
    bench.tell(control.Error("unavailable", "Spark is starting", pull.id))
    assert not bench.tell(bench.cluster.execute("c", lambda be: True)["a"])
    assert notes(bench.answer_data(bench.wait(1.0)), 1) == [(1, 1), (1, 2)]


def test_a_broker_told_to_be_behind_pulls_for_all_its_lines(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(1), bench.held(2))
    for _ in range(2):
        bench.cluster.execute("c", lambda be: True)
    assert notes(bench.answer_data(bench.tell(control.Behind("c", 1, 2))), 1) == [(1, 1), (2, 1), (1, 2), (2, 2)]


def test_a_slow_connection_is_told_and_goes_on_where_it_was_when_flushed() -> None:
    bench = Bench(BrokerLimits(waiting_bytes=400))
    bench.connect()
    bench.serve("ann", 1, bench.held())
    bench.serve("bob", 2, bench.held())
    bench.do(events.Flushed(1, 0))
    got: list[tuple[int, int]] = []
    slow = 0
    for _ in range(30):
        did = bench.execute()
        got += notes(did, 1)
        slow += sum(isinstance(message, subscriber.Slow) for message in sent(did, 1))
        bench.do(events.Flushed(2, 0))
    assert slow == 1
    assert len(got) < 12
    for _ in range(20):
        got += notes(bench.answer_data(did := bench.do(events.Flushed(1, 0))) + did, 1)
    assert got == [(1, n) for n in range(1, 31)]


def test_whoever_asks_without_reading_the_answers_is_closed() -> None:
    bench = Bench(BrokerLimits(waiting_bytes=300))
    bench.connect()
    bench.serve("ann", 1)
    did = [action for n in range(20) for action in bench.say(1, subscriber.Unsubscribe(n, 99))]
    assert [action.code for action in did if isinstance(action, actions.Close)] == [subscriber.Code.FLOOD]


def test_a_notice_may_come_before_the_number_of_its_subscription(bench: Bench) -> None:
    bench.serve("ann", 1)
    [attach] = told(bench.say(1, subscriber.Subscribe(1, "c", {"v": 1})), control.Attach)
    answer = bench.cluster.answer("a", attach)
    bench.tell(bench.cluster.execute("c", lambda be: True)["a"])
    [keep] = told(bench.tell(answer), coordination.Keep)
    did = bench.tell(coordination.Kept(keep.ref))
    assert notes(bench.answer_data(did), 1) == [(1, 1)]


def test_acknowledgements_are_reported_together_and_never_beyond_what_was_executed(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    bench.execute()
    bench.say(1, subscriber.Acknowledge({1: 77, 5: 3}))
    assert told(bench.wait(1.0), coordination.Progress) == [coordination.Progress({"ann": {1: 1}})]
    assert told(bench.wait(5.0), coordination.Progress) == []


def test_load_counts_each_line_once_in_and_each_subscriber_once_out(bench: Bench) -> None:
    for session, name in enumerate(["ann", "bob", "cid"], 1):
        bench.serve(name, session, bench.held())
    bench.wait(10.0)
    bench.execute()
    incoming, outgoing = bench.core.load(bench.now)
    assert incoming == pytest.approx(weight(result(1, 1).bytes) / 10.0)
    assert outgoing == pytest.approx(3 * incoming)
    [load] = told(bench.wait(2.0), coordination.Load)
    assert load.rates == {1: pytest.approx(incoming)}


def test_a_payload_is_passed_on_as_it_is(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    [message] = sent(bench.execute(), 1)
    assert isinstance(message, subscriber.Notes)
    assert bytes(message.notes[0].payload) == bytes(result(1, 1).payload)


def test_who_is_not_served_is_told_why(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(1))
    bench.serve("bob", 2, bench.held(2))
    did = bench.tell(control.Failing("c", [1, 99], "division by zero"))
    assert sent(did, 1) == [subscriber.Error("failing", "c: division by zero", subscription=1)]
    assert sent(did, 2) == []
    assert bench.tell(control.Failing("unknown", [1], "division by zero")) == []

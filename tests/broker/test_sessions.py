"""Connections: login, limits, and what a broker says to garbage."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.world import Bench, closed, notes, sent, told
from tocsin.broker import events
from tocsin.broker.limits import BrokerLimits
from tocsin.model import coordination, subscriber
from tocsin.model.subscriber import Code


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.connect()
    return bench


def test_a_login_is_welcomed_with_what_is_held_and_the_coordinator_is_told(bench: Bench) -> None:
    bench.tell(coordination.Prepare("ann", 3, [bench.held()]))
    assert told(bench.answer_data(), coordination.Prepared) == [coordination.Prepared("ann", 3)]
    did = bench.login("ann", 1)
    [welcome] = sent(did, 1)
    assert isinstance(welcome, subscriber.Welcome)
    assert [held.subscription for held in welcome.subscriptions] == [1]
    assert told(did, coordination.Arrived) == [coordination.Arrived("ann", 3)]


def test_a_welcome_says_what_is_newest_in_each_channel_that_is_held(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held(1), bench.held(2, channel="d"))
    bench.execute("c")
    bench.execute("c")
    bench.do(events.Closed(1))
    bench.execute("d")
    [welcome, *_] = sent(bench.login("ann", 2), 2)
    assert isinstance(welcome, subscriber.Welcome)
    assert welcome.newest == {"c": 2, "d": 1}


def test_a_connection_without_login_is_closed_in_time(bench: Bench) -> None:
    bench.do(events.Opened(1))
    did = bench.wait(10.0)
    assert closed(did) == [(1, Code.LATE)]


def test_a_wrong_token_is_refused(bench: Bench) -> None:
    bench.do(events.Opened(1))
    did = bench.say(1, subscriber.Login("forged"))
    assert closed(did) == [(1, Code.UNAUTHORIZED)]
    assert [message.code for message in sent(did, 1) if isinstance(message, subscriber.Error)] == ["unauthorized"]


def test_a_subscriber_of_another_broker_is_sent_away(bench: Bench) -> None:
    assert closed(bench.login("bob", 1)) == [(1, Code.ELSEWHERE)]


def test_a_second_connection_replaces_the_first(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    assert closed(bench.login("ann", 2)) == [(1, Code.REPLACED)]
    assert notes(bench.execute(), 2) == [(1, 1)]


def test_a_flood_closes_only_its_own_connection() -> None:
    bench = Bench(BrokerLimits(message_burst=3.0, messages_per_second=1.0))
    bench.connect()
    bench.serve("ann", 1, bench.held())
    bench.serve("bob", 2, bench.held())
    for _ in range(2):
        assert not closed(bench.say(1, subscriber.Acknowledge({})))
    assert closed(bench.say(1, subscriber.Acknowledge({}))) == [(1, Code.FLOOD)]
    assert notes(bench.execute(), 2) == [(1, 1)]


def test_a_message_that_is_too_large_closes_its_connection() -> None:
    bench = Bench(BrokerLimits(message_bytes=100))
    bench.connect()
    bench.serve("ann", 1)
    assert closed(bench.do(events.Received(1, b" " * 101))) == [(1, 1009)]


def test_another_version_of_the_protocol_is_refused(bench: Bench) -> None:
    bench.do(events.Opened(1))
    assert closed(bench.say(1, subscriber.Login("token-ann", version=2))) == [(1, Code.UNREADABLE)]


def test_whoever_is_not_logged_in_may_not_ask(bench: Bench) -> None:
    bench.do(events.Opened(1))
    assert closed(bench.say(1, subscriber.Subscribe(1, "c", {}))) == [(1, Code.UNREADABLE)]


def test_a_wrong_request_with_an_id_is_answered_and_the_connection_stays(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    did = bench.do(events.Received(1, b'{"type":"subscribe","id":7,"channel":5}'))
    [error] = sent(did, 1)
    assert isinstance(error, subscriber.Error)
    assert (error.code, error.id) == ("invalid", 7)
    assert not closed(did)
    assert notes(bench.execute(), 1) == [(1, 1)]


def test_logging_out_keeps_the_subscriptions(bench: Bench) -> None:
    bench.serve("ann", 1, bench.held())
    assert closed(bench.say(1, subscriber.Logout())) == [(1, Code.LOGOUT)]
    bench.execute()
    assert notes(bench.login("ann", 2), 2) == [(1, 1)]


@given(
    st.one_of(
        st.binary(max_size=60),
        st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)).map(
            msgspec.json.encode
        ),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["login", "subscribe", "unsubscribe", "ack", "publish", "logout", "notes", "x"])},
            optional={
                "id": st.integers(-5, 5) | st.text(max_size=3),
                "channel": st.text(max_size=3) | st.integers(),
                "parameters": st.dictionaries(st.text(max_size=3), st.integers(), max_size=2) | st.none(),
                "subscription": st.integers(-2, 3),
                "cursors": st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
                "records": st.lists(st.integers(), max_size=2),
                "feed": st.text(max_size=2),
                "token": st.text(max_size=3),
            },
        ).map(msgspec.json.encode),
    ),
    st.booleans(),
)
def test_garbage_is_answered_and_hurts_nobody(data: bytes, logged_in: bool) -> None:
    bench = Bench()
    bench.connect()
    bench.serve("ann", 1, bench.held())
    if logged_in:
        bench.serve("eve", 2, bench.held())
    else:
        bench.do(events.Opened(2))
    did = bench.do(events.Received(2, data))
    ended = {code for _, code in closed(did)}
    assert ended <= {Code.UNREADABLE, Code.UNAUTHORIZED, Code.ELSEWHERE, Code.LOGOUT}
    if ended - {Code.LOGOUT}:
        assert any(isinstance(message, subscriber.Error) for message in sent(did, 2))
    assert not logged_in or Code.UNAUTHORIZED not in ended
    assert notes(bench.execute(), 1) == [(1, 1)]

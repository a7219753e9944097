"""Calls and confirmations: what the application asked for is asked of brokers until it is answered."""

from __future__ import annotations

import pytest

from tests.client.driving import FIRES, Program, again, asked, every, held, notes, only, sent, subscribed
from tocsin.client.core.actions import Confirmed, Deliver, Ended, RequestRefused, Resumed, Send
from tocsin.client.core.events import Subscribe, Unsubscribe
from tocsin.client.rules import Rules
from tocsin.model.subscriber import Error, Held, Unsubscribed
from tocsin.model.subscriber import Subscribe as SubscribeRequest


def test_a_call_is_asked_for_and_confirmed() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Fires", FIRES, live=True)), SubscribeRequest)
    assert (request.channel, request.parameters, request.live) == ("Fires", FIRES, True)
    assert program.confirm(1, request, 7, 5) == [Confirmed(1, Held(7, "Fires", FIRES, 5, True))]


def test_a_call_from_before_the_start_is_asked_for_when_welcomed() -> None:
    program = Program()
    program.do(Subscribe(1, "Fires", FIRES))
    program.serve()
    assert asked(program.actions, SubscribeRequest).channel == "Fires"


def test_an_unanswered_call_is_asked_again_under_the_same_id() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Fires", FIRES)), SubscribeRequest)
    again(program, 1)
    assert asked(program.actions, SubscribeRequest) == request


def test_a_confirmed_call_is_not_asked_again() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    again(program, 1, held(7))
    assert program.actions[1:] == []


def test_a_confirmed_call_that_a_broker_does_not_know_is_asked_again_in_silence() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    connection = again(program, 1)
    request = asked(program.actions, SubscribeRequest)
    assert program.confirm(connection, request, 7) == []


def test_the_application_is_told_when_its_subscription_has_another_number() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    connection = again(program, 1)
    actions = program.confirm(connection, asked(program.actions, SubscribeRequest), 8)
    assert only(actions, Confirmed).held.subscription == 8
    assert only(actions, Ended) == Ended(7)


def test_a_refusal_is_told_once_and_the_call_forgotten() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Nope")), SubscribeRequest)
    refusal = Error("not-found", "there is no channel Nope", request.id)
    assert program.say(1, refusal) == [RequestRefused(1, "not-found", "there is no channel Nope")]
    assert every(program.say(1, refusal), RequestRefused) == []
    again(program, 1)
    assert sent(program.actions, SubscribeRequest) == []


def test_a_call_that_no_broker_would_read_is_refused_at_once() -> None:
    program = Program(Rules(message_bytes=100))
    assert only(program.do(Subscribe(1, "Fires", {"event": "f" * 100})), RequestRefused).code == "too-large"


def test_a_call_that_is_no_json_is_an_error_and_changes_nothing() -> None:
    program = Program()
    with pytest.raises(TypeError):
        program.do(Subscribe(1, "Fires", {"event": object()}))
    program.serve()
    assert sent(program.actions, SubscribeRequest) == []


def test_a_broker_that_is_busy_is_asked_again_when_it_said() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Fires", FIRES)), SubscribeRequest)
    assert program.say(1, Error("busy", "later", request.id, retry_after=3.0)) == []
    before = program.now
    assert asked(program.wait(), SubscribeRequest) == request
    assert program.now == before + 3.0


def test_no_more_requests_are_under_way_than_the_window_allows() -> None:
    program = Program(Rules(window=2))
    program.serve()
    requests = [request for ref in range(4) for request in sent(program.do(Subscribe(ref, "Fires")), SubscribeRequest)]
    assert len(requests) == 2
    assert len(sent(program.confirm(1, requests[0], 7), SubscribeRequest)) == 1


def test_what_a_broker_holds_from_before_is_told_and_delivered() -> None:
    program = Program()
    program.serve(held(7, 3))
    assert only(program.actions, Resumed) == Resumed(held(7, 3))
    assert every(program.say(1, notes(7, 3, 4)), Deliver) == [Deliver(7, notes(7, 4).notes[0])]
    again(program, 1, held(7, 3))
    assert every(program.actions, Resumed) == []


def test_what_is_no_longer_held_from_before_is_forgotten() -> None:
    program = Program()
    program.serve(held(7, 3))
    connection = again(program, 1)
    assert every(program.actions, Ended) == [Ended(7)]
    assert every(program.say(connection, notes(7, 4)), Deliver) == []


def test_a_late_or_unknown_answer_changes_nothing() -> None:
    program = Program()
    program.serve()
    request = subscribed(program)
    assert program.confirm(1, request, 9) == []
    assert program.say(1, Unsubscribed(999, 8)) == []
    assert program.do(Unsubscribe(999)) == []


def test_what_somebody_wants_with_all_that_was_missed_is_asked_for_as_live_by_nobody() -> None:
    program = Program()
    program.serve()
    calls = [
        Subscribe(1, "Fires", FIRES),
        Subscribe(2, "fires", FIRES, live=True),
        Subscribe(3, "Floods", {}, live=True),
    ]
    assert [asked(program.do(call), SubscribeRequest).live for call in calls] == [False, False, True]


def test_what_turns_out_to_be_what_somebody_wants_with_all_that_was_missed_is_not_left_live() -> None:
    program = Program()
    program.serve()
    whole = asked(program.do(Subscribe(1, "Fires", {})), SubscribeRequest)
    program.confirm(1, whole, 7)
    live = asked(program.do(Subscribe(2, "Fires", FIRES, live=True)), SubscribeRequest)
    assert live.live
    did = program.confirm(1, live, 7)
    again = asked(did, SubscribeRequest)
    assert (again.parameters, again.live) == (FIRES, False)
    assert [type(action) for action in did] == [Confirmed, Send]
    assert program.confirm(1, again, 7) == []

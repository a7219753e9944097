"""Wishes and confirmations: what the application asked for is asked of brokers until it is answered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.driving import Program, asked, every, held, notes, only, sent, welcome
from tocsin.client.actions import Confirmed, Deliver, Ended, Open, Refused, Resumed, Troubled
from tocsin.client.actions import Unsubscribed as Left
from tocsin.client.events import Lost, Opened, Subscribe, Unsubscribe
from tocsin.client.rules import Rules
from tocsin.model.subscriber import Error, Held, Unsubscribed
from tocsin.model.subscriber import Subscribe as SubscribeRequest
from tocsin.model.subscriber import Unsubscribe as UnsubscribeRequest

FIRES: dict[str, Any] = {"event": "fire"}


def again(program: Program, connection: int, *subscriptions: Held) -> int:
    """Loses the connection and is welcomed on a new one; the actions are those of the welcome."""
    program.do(Lost(connection))
    opened = only(program.wait(), Open).connection
    program.do(Opened(opened))
    program.say(opened, welcome(*subscriptions))
    return opened


def subscribed(program: Program, ref: int = 1, number: int = 7) -> SubscribeRequest:
    """Subscribes, with the broker's confirmation."""
    request = asked(program.do(Subscribe(ref, "Fires", FIRES)), SubscribeRequest)
    program.confirm(1, request, number)
    return request


def test_a_wish_is_asked_for_and_confirmed() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Fires", FIRES, live=True)), SubscribeRequest)
    assert (request.channel, request.parameters, request.live) == ("Fires", FIRES, True)
    assert program.confirm(1, request, 7, 5) == [Confirmed(1, Held(7, "Fires", FIRES, 5, True))]


def test_a_wish_from_before_the_start_is_asked_for_when_welcomed() -> None:
    program = Program()
    program.do(Subscribe(1, "Fires", FIRES))
    program.serve()
    assert asked(program.actions, SubscribeRequest).channel == "Fires"


def test_an_unanswered_wish_is_asked_again_under_the_same_id() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Fires", FIRES)), SubscribeRequest)
    again(program, 1)
    assert asked(program.actions, SubscribeRequest) == request


def test_a_confirmed_wish_is_not_asked_again() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    again(program, 1, held(7))
    assert program.actions[1:] == []


def test_a_confirmed_wish_that_a_broker_does_not_know_is_asked_again_in_silence() -> None:
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


def test_a_refusal_is_told_once_and_the_wish_forgotten() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Nope")), SubscribeRequest)
    refusal = Error("not-found", "there is no channel Nope", request.id)
    assert program.say(1, refusal) == [Refused(1, "not-found", "there is no channel Nope")]
    assert every(program.say(1, refusal), Refused) == []
    again(program, 1)
    assert sent(program.actions, SubscribeRequest) == []


def test_a_wish_that_no_broker_would_read_is_refused_at_once() -> None:
    program = Program(Rules(message_bytes=100))
    assert only(program.do(Subscribe(1, "Fires", {"event": "f" * 100})), Refused).code == "too-large"


def test_a_wish_that_is_no_json_is_an_error_and_changes_nothing() -> None:
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


def test_what_is_given_up_is_not_delivered_any_more() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    request = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    assert request.subscription == 7
    assert every(program.actions, Ended) == [Ended(7)]
    assert every(program.say(1, notes(7, 1)), Deliver) == []
    assert program.say(1, Unsubscribed(request.id, 7)) == [Left(1)]


def test_giving_up_is_repeated_until_answered() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    request = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    connection = again(program, 1, held(7))
    assert asked(program.actions, UnsubscribeRequest) == request
    assert every(program.say(connection, notes(7, 1)), Deliver) == []


def test_a_broker_that_no_longer_holds_it_has_answered_as_well() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    program.do(Unsubscribe(1))
    again(program, 1)
    assert every(program.actions, Left) == [Left(1)]
    assert sent(program.actions, UnsubscribeRequest) == []


@pytest.mark.parametrize(("code", "troubles"), [("not-found", 0), ("forbidden", 1)])
def test_giving_up_ends_also_with_a_refusal(code: str, troubles: int) -> None:
    program = Program()
    program.serve()
    subscribed(program)
    request = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    actions = program.say(1, Error(code, "no", request.id))
    assert len(every(actions, Troubled)) == troubles
    assert only(actions, Left) == Left(1)


def test_what_was_given_up_and_is_held_elsewhere_is_given_up_there() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    request = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    program.say(1, Unsubscribed(request.id, 7))
    connection = again(program, 1, held(7))
    second = asked(program.actions, UnsubscribeRequest)
    assert every(program.actions, Resumed) == []
    assert program.say(connection, Unsubscribed(second.id, 7)) == []


def test_a_wish_that_was_never_sent_is_given_up_at_once() -> None:
    program = Program()
    program.do(Subscribe(1, "Fires", FIRES))
    assert program.do(Unsubscribe(1)) == [Left(1)]
    program.serve()
    assert sent(program.actions, SubscribeRequest) == []


def test_a_wish_without_an_answer_is_given_up_when_its_number_is_known() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Fires", FIRES)), SubscribeRequest)
    assert program.do(Unsubscribe(1)) == []
    actions = program.confirm(1, request, 7)
    assert every(actions, Confirmed) == []
    assert asked(actions, UnsubscribeRequest).subscription == 7


def test_giving_up_what_is_refused_in_the_meantime_is_done() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Nope")), SubscribeRequest)
    program.do(Unsubscribe(1))
    assert program.say(1, Error("not-found", "no", request.id)) == [Left(1)]


def test_two_wishes_share_a_subscription_and_the_last_gives_it_up() -> None:
    program = Program()
    program.serve()
    subscribed(program, 1)
    subscribed(program, 2)
    assert program.do(Unsubscribe(1)) == [Left(1)]
    assert every(program.say(1, notes(7, 1)), Deliver)
    assert asked(program.do(Unsubscribe(2)), UnsubscribeRequest).subscription == 7


def test_what_may_be_the_same_is_asked_for_when_the_old_one_is_given_up() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    program.say(1, notes(7, 1, 2))
    leaving = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    program.say(1, Error("busy", "later", leaving.id))
    assert sent(program.do(Subscribe(2, "fires", FIRES)), SubscribeRequest) == []
    assert asked(program.do(Subscribe(3, "Floods")), SubscribeRequest).channel == "Floods"
    assert asked(program.wait(), UnsubscribeRequest) == leaving
    request = asked(program.say(1, Unsubscribed(leaving.id, 7)), SubscribeRequest)
    program.confirm(1, request, 7, cursor=5)
    delivered = every(program.say(1, notes(7, 5, 6)), Deliver)
    assert [deliver.note.e for deliver in delivered] == [6]


def test_what_was_given_up_and_is_held_elsewhere_is_given_up_before_it_is_asked_for_anew() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    leaving = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    program.say(1, Unsubscribed(leaving.id, 7))
    program.do(Lost(1))
    program.do(Subscribe(2, "Fires", FIRES))
    opened = only(program.wait(), Open).connection
    program.do(Opened(opened))
    program.say(opened, welcome(held(7)))
    assert sent(program.actions, SubscribeRequest) == []
    left = asked(program.actions, UnsubscribeRequest)
    assert asked(program.say(opened, Unsubscribed(left.id, 7)), SubscribeRequest).channel == "Fires"


def test_a_wish_that_waits_for_another_to_be_given_up_can_be_given_up_itself() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    leaving = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    program.do(Subscribe(2, "Fires", FIRES))
    assert program.do(Unsubscribe(2)) == [Left(2)]
    assert program.say(1, Unsubscribed(leaving.id, 7)) == [Left(1)]


def test_what_is_given_up_before_its_answer_is_not_resumed() -> None:
    program = Program()
    program.serve()
    program.do(Subscribe(1, "Fires", FIRES))
    program.do(Unsubscribe(1))
    connection = again(program, 1, held(7))
    assert every(program.actions, Resumed) == []
    actions = program.confirm(connection, asked(program.actions, SubscribeRequest), 7)
    assert asked(actions, UnsubscribeRequest).subscription == 7


def test_a_new_wish_is_not_taken_for_what_was_given_up() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    leaving = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    program.say(1, Unsubscribed(leaving.id, 7))
    program.do(Subscribe(2, "Fires", FIRES))
    connection = again(program, 1, held(7, 4))
    assert sent(program.actions, UnsubscribeRequest) == []
    assert every(program.say(connection, notes(7, 5)), Deliver)


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

"""Giving up: what the application no longer wants is neither delivered nor held, whatever is lost on the way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.client.driving import FIRES, Program, again, asked, every, held, notes, only, sent, subscribed, welcome
from tocsin.client.core.actions import Close, Confirmed, Deliver, Ended, Open, Resumed, Troubled
from tocsin.client.core.actions import Unsubscribed as Left
from tocsin.client.core.events import BrokerFound, Lost, Opened, Start, Subscribe, Unsubscribe
from tocsin.model.subscriber import VERSION, Answer, Error, Gap, Renewed, Unsubscribed
from tocsin.model.subscriber import Ended as SubscriptionEnded
from tocsin.model.subscriber import Subscribe as SubscribeRequest
from tocsin.model.subscriber import Subscribed as SubscribedAnswer
from tocsin.model.subscriber import Unsubscribe as UnsubscribeRequest


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


def test_what_two_calls_give_up_together_is_asked_for_once_more_only() -> None:
    program = Program()
    connection = program.serve()
    first = asked(program.do(Subscribe(1, "Fires", FIRES)), SubscribeRequest)
    program.confirm(connection, first, 7)
    second = asked(program.do(Subscribe(2, "Fires", FIRES)), SubscribeRequest)
    program.do(Unsubscribe(1))
    program.do(Unsubscribe(2))
    connection = again(program, connection, held(7))
    earlier = asked(program.actions, UnsubscribeRequest)
    later = asked(program.confirm(connection, second, 7), UnsubscribeRequest)
    program.say(connection, Unsubscribed(earlier.id, 7))
    program.say(connection, Error("not-found", "it is not held", later.id))
    again(program, connection)
    assert sent(program.actions, UnsubscribeRequest) == []


def test_a_call_that_was_never_sent_is_given_up_at_once() -> None:
    program = Program()
    program.do(Lost(program.serve()))
    program.do(Subscribe(1, "Fires", FIRES))
    assert program.do(Unsubscribe(1)) == [Left(1)]


def test_what_is_wanted_and_given_up_before_the_first_welcome_is_over_when_no_broker_holds_it() -> None:
    program = Program()
    program.do(Subscribe(1, "Fires", FIRES))
    assert program.do(Unsubscribe(1)) == []
    program.serve()
    assert every(program.actions, Left) == [Left(1)]
    assert sent(program.actions, SubscribeRequest) == []


def test_what_an_earlier_program_held_is_given_up_though_that_was_wanted_before_the_first_welcome() -> None:
    program = Program()
    program.do(Subscribe(1, "fires", FIRES))
    assert program.do(Unsubscribe(1)) == []
    connection = program.serve(held(7))
    assert every(program.actions, Resumed) == []
    actions = program.confirm(connection, asked(program.actions, SubscribeRequest), 7)
    request = asked(actions, UnsubscribeRequest)
    assert request.subscription == 7
    assert every(program.say(connection, Unsubscribed(request.id, 7)), Left) == [Left(1)]


def test_all_that_an_earlier_program_held_is_given_up_though_one_had_to_wait_for_another() -> None:
    program = Program()
    flood = replace(held(8), parameters={"event": "flood"})
    for ref, parameters in enumerate([FIRES, flood.parameters], 1):
        program.do(Subscribe(ref, "Fires", parameters))
        assert program.do(Unsubscribe(ref)) == []
    connection = program.serve(held(7), flood)
    given_up = []
    for number in (7, 8):
        program.confirm(connection, asked(program.actions, SubscribeRequest), number)
        request = asked(program.actions, UnsubscribeRequest)
        given_up.append(request.subscription)
        program.say(connection, Unsubscribed(request.id, number))
        assert len(every(program.actions, Left)) == 1
    assert given_up == [7, 8]


def test_what_has_to_wait_for_another_of_its_channel_is_given_up_too_if_an_earlier_program_held_it() -> None:
    program = Program()
    flood = replace(held(8), parameters={"event": "flood"})
    connection = program.serve(held(7), flood)
    request = asked(program.do(Subscribe(1, "Fires", FIRES)), SubscribeRequest)
    program.confirm(connection, request, 7)
    first = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    program.do(Subscribe(2, "Fires", flood.parameters))
    assert program.do(Unsubscribe(2)) == []
    request = asked(program.say(connection, Unsubscribed(first.id, 7)), SubscribeRequest)
    program.confirm(connection, request, 8)
    assert asked(program.actions, UnsubscribeRequest).subscription == 8


def test_a_call_without_an_answer_is_given_up_when_its_number_is_known() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Fires", FIRES)), SubscribeRequest)
    assert program.do(Unsubscribe(1)) == []
    actions = program.confirm(1, request, 7)
    assert every(actions, Confirmed) == []
    assert asked(actions, UnsubscribeRequest).subscription == 7


def test_what_is_asked_for_once_more_is_given_up_when_that_is_answered() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    connection = again(program, 1)
    request = asked(program.actions, SubscribeRequest)
    assert program.do(Unsubscribe(1)) == [Ended(7)]
    given_up = asked(program.confirm(connection, request, 8), UnsubscribeRequest)
    assert given_up.subscription == 8
    assert program.say(connection, Unsubscribed(given_up.id, 8)) == [Left(1)]


def test_what_is_asked_for_once_more_and_given_up_is_not_taken_from_others() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    program.confirm(1, asked(program.do(Subscribe(2, "Fires", FIRES)), SubscribeRequest), 7)
    connection = again(program, 1)
    first, second = sent(program.actions, SubscribeRequest)
    assert program.do(Unsubscribe(1)) == []
    assert program.confirm(connection, first, 7) == [Left(1)]
    assert program.confirm(connection, second, 7) == []
    assert only(program.say(connection, notes(7, 1)), Deliver).note.e == 1


def test_giving_up_what_is_refused_in_the_meantime_is_done() -> None:
    program = Program()
    program.serve()
    request = asked(program.do(Subscribe(1, "Nope")), SubscribeRequest)
    program.do(Unsubscribe(1))
    assert program.say(1, Error("not-found", "no", request.id)) == [Left(1)]


def test_two_calls_share_a_subscription_and_the_last_gives_it_up() -> None:
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


def test_a_call_that_waits_for_another_to_be_given_up_can_be_given_up_itself() -> None:
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


def test_a_new_call_is_not_taken_for_what_was_given_up() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    leaving = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    program.say(1, Unsubscribed(leaving.id, 7))
    program.do(Subscribe(2, "Fires", FIRES))
    connection = again(program, 1, held(7, 4))
    assert sent(program.actions, UnsubscribeRequest) == []
    assert every(program.say(connection, notes(7, 5)), Deliver)


def test_what_gets_another_number_while_it_is_given_up_is_given_up_under_that() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    first = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    second = asked(program.say(1, Renewed(7, held(8))), UnsubscribeRequest)
    assert (second.subscription, second.id != first.id) == (8, True)
    assert every(program.say(1, notes(8, 1)), Deliver) == []
    assert every(program.say(1, Unsubscribed(first.id, 7)), Left) == []
    assert program.say(1, Unsubscribed(second.id, 8)) == [Left(1)]


def test_what_ends_while_it_is_given_up_is_given_up() -> None:
    program = Program()
    program.serve()
    subscribed(program)
    request = asked(program.do(Unsubscribe(1)), UnsubscribeRequest)
    assert program.say(1, SubscriptionEnded(7, "gone", "the channel was dropped")) == [Left(1)]
    assert program.say(1, Unsubscribed(request.id, 7)) == []
    again(program, 1)
    assert sent(program.actions, UnsubscribeRequest) == []


TOO_LARGE = 2**63


@pytest.mark.parametrize(
    "nonsense",
    [
        notes(7, -1),
        notes(-7, 1),
        Gap(7, 1, TOO_LARGE),
        SubscribedAnswer(1, held(-1)),
        SubscribedAnswer(1, held(1, cursor=TOO_LARGE)),
        Renewed(7, held(-1)),
        Renewed(7, held(8, cursor=TOO_LARGE)),
        welcome(),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_a_broker_that_says_what_cannot_be_is_left_and_looked_for_again(nonsense: Answer) -> None:
    program = Program()
    connection = program.serve()
    subscribed(program)
    actions = program.say(connection, nonsense)
    assert every(actions, Close) == [Close(connection)]
    assert len(every(actions, Troubled)) == 1
    assert every(actions, Deliver) == []
    assert only(program.wait(), Open).connection != connection


@pytest.mark.parametrize(
    "nonsense",
    [
        welcome(version=0),
        welcome(version=VERSION + 1),
        welcome(held(-1)),
        welcome(held(1, cursor=TOO_LARGE)),
        welcome(newest={"Fires": -1}),
    ],
    ids=["too old", "too new", "a number", "a cursor", "the newest"],
)
def test_a_welcome_that_cannot_be_is_none(nonsense: Answer) -> None:
    program = Program()
    program.do(Start("token"))
    connection = only(program.do(BrokerFound("ws://a")), Open).connection
    program.do(Opened(connection))
    actions = program.say(connection, nonsense)
    assert every(actions, Close) == [Close(connection)]
    assert len(every(actions, Troubled)) == 1
    assert every(actions, Resumed) == []

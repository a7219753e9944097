"""Moving to another broker: the first connection serves until the second is welcomed, whatever happens between."""

from __future__ import annotations

import pytest

from tests.client.driving import Program, asked, every, held, notes, only, sent, welcome
from tocsin.client.core.actions import Close, ConnectionState, Deliver, Failed, Open, StateChanged, Troubled
from tocsin.client.core.events import Lost, Opened, Subscribe, Taken
from tocsin.model.subscriber import Acknowledge, Code, Login, Moved
from tocsin.model.subscriber import Subscribe as SubscribeRequest


@pytest.fixture
def program() -> Program:
    """On its way from broker a, connection 1, to broker b, connection 2."""
    program = Program()
    program.serve(held(7))
    assert program.say(1, Moved("ws://b")) == [StateChanged(ConnectionState.MOVING, "ws://a"), Open(2, "ws://b")]
    return program


def test_the_first_connection_goes_on_until_the_second_is_welcomed(program: Program) -> None:
    assert every(program.say(1, notes(7, 1)), Deliver)
    assert every(program.do(Opened(2)), Close) == []
    assert every(program.say(1, notes(7, 2)), Deliver)
    assert program.say(2, welcome(held(7))) == [Close(1), StateChanged(ConnectionState.SERVING, "ws://b")]
    assert program.say(1, notes(7, 3)) == []
    assert every(program.say(2, notes(7, 1, 2, 3)), Deliver) == [Deliver(7, notes(7, 3).notes[0])]


def test_the_new_broker_is_told_what_was_taken_and_not_what_was_delivered(program: Program) -> None:
    program.say(1, notes(7, 1, 2))
    program.do(Taken(7, 1))
    assert asked(program.do(Opened(2)), Login).cursors == {7: 1}


def test_what_is_taken_while_entering_is_acknowledged_at_the_new_broker(program: Program) -> None:
    program.say(1, notes(7, 1))
    program.do(Opened(2))
    program.do(Taken(7, 1))
    assert asked(program.wait(), Acknowledge).cursors == {7: 1}
    program.say(2, welcome(held(7, 0)))
    assert asked(program.wait(), Acknowledge).cursors == {7: 1}


@pytest.mark.parametrize("code", [1006, Code.ELSEWHERE, Code.UNAUTHORIZED, Code.REPLACED, Code.FLOOD])
def test_a_new_broker_that_does_not_take_it_changes_nothing(program: Program, code: int) -> None:
    program.do(Opened(2))
    assert program.do(Lost(2, code)) == [StateChanged(ConnectionState.SERVING, "ws://a")]
    assert every(program.say(1, notes(7, 1)), Deliver)


def test_a_new_broker_that_never_welcomes_is_given_up(program: Program) -> None:
    program.do(Opened(2))
    actions = program.wait()
    assert only(actions, Troubled).code == "deadline"
    assert only(actions, Close).connection == 2
    assert program.core.state is ConnectionState.SERVING


def test_another_target_replaces_the_first(program: Program) -> None:
    assert program.say(1, Moved("ws://c")) == [Close(2), Open(3, "ws://c")]
    assert program.do(Opened(2)) == []


@pytest.mark.parametrize("url", ["ws://a", "ws://b"])
def test_being_sent_where_it_is_or_goes_already_changes_nothing(program: Program, url: str) -> None:
    assert program.say(1, Moved(url)) == []


def test_a_move_goes_on_alone_when_the_first_connection_is_lost(program: Program) -> None:
    assert program.do(Lost(1)) == [StateChanged(ConnectionState.CONNECTING, "ws://b")]
    program.do(Opened(2))
    assert program.say(2, welcome(held(7))) == [StateChanged(ConnectionState.SERVING, "ws://b")]


def test_when_both_are_lost_the_coordinator_is_asked(program: Program) -> None:
    program.do(Lost(1))
    program.do(Lost(2))
    assert only(program.wait(), StateChanged).state is ConnectionState.ASKING


def test_another_program_of_the_same_name_ends_it_even_while_moving(program: Program) -> None:
    actions = program.do(Lost(1, Code.REPLACED))
    assert only(actions, Failed).code == "replaced"
    assert only(actions, Close).connection == 2


def test_requests_wait_while_the_new_broker_is_about_to_say_what_it_holds(program: Program) -> None:
    program.do(Opened(2))
    assert sent(program.do(Subscribe(1, "Floods")), SubscribeRequest) == []
    assert asked(program.say(2, welcome(held(7))), SubscribeRequest).channel == "Floods"


def test_requests_that_waited_go_out_when_the_move_fails(program: Program) -> None:
    program.do(Opened(2))
    program.do(Subscribe(1, "Floods"))
    assert asked(program.do(Lost(2)), SubscribeRequest).channel == "Floods"

"""Being connected: finding a broker, logging in, and coming back after a loss."""

from __future__ import annotations

import pytest

from tests.client.driving import Program, asked, every, held, notes, only, sent, welcome
from tocsin.client.core.actions import AskBroker, Close, ConnectionState, Failed, Open, Send, StateChanged, Troubled
from tocsin.client.core.events import BrokerFound, CoordinatorFailed, Lost, Opened, Received, Start, Stop, Taken, Tick
from tocsin.client.rules import Rules
from tocsin.model.subscriber import Acknowledge, Code, Error, Login, Logout, Moved


def test_the_coordinator_names_the_broker_to_log_in_at() -> None:
    program = Program()
    assert program.do(Start("secret")) == [StateChanged(ConnectionState.ASKING), AskBroker()]
    assert program.do(BrokerFound("ws://a")) == [StateChanged(ConnectionState.CONNECTING, "ws://a"), Open(1, "ws://a")]
    actions = program.do(Opened(1))
    assert asked(actions, Login) == Login("secret", 1, {})
    assert every(actions, StateChanged) == [StateChanged(ConnectionState.ENTERING, "ws://a")]
    assert program.say(1, welcome()) == [StateChanged(ConnectionState.SERVING, "ws://a")]


def test_starting_twice_asks_once() -> None:
    program = Program()
    program.do(Start("secret"))
    assert program.do(Start("secret")) == []


def test_a_coordinator_that_fails_is_asked_again_after_a_wait() -> None:
    program = Program()
    program.do(Start("secret"))
    actions = program.do(CoordinatorFailed("no route"))
    assert actions == [Troubled("coordinator", "no route"), StateChanged(ConnectionState.WAITING)]
    assert program.wait() == [StateChanged(ConnectionState.ASKING), AskBroker()]


def test_a_coordinator_that_is_silent_has_failed() -> None:
    program = Program()
    program.do(Start("secret"))
    assert only(program.wait(), StateChanged).state is ConnectionState.WAITING
    assert program.do(BrokerFound("ws://late")) == []


def test_the_same_broker_is_tried_first_and_then_the_coordinator_asked() -> None:
    program = Program()
    connection = program.serve()
    assert only(program.do(Lost(connection)), StateChanged).state is ConnectionState.WAITING
    again = only(program.wait(), Open)
    assert again == Open(connection + 1, "ws://a")
    program.do(Lost(again.connection))
    assert every(program.wait(), AskBroker)


def test_without_the_coordinator_the_known_broker_goes_on_being_tried() -> None:
    program = Program()
    program.do(Lost(program.serve()))
    program.do(Lost(only(program.wait(), Open).connection))
    program.wait()
    assert only(program.do(CoordinatorFailed()), Open).url == "ws://a"


@pytest.mark.parametrize("code", [Code.ELSEWHERE, 1001])
def test_a_broker_that_lets_go_is_not_tried_again_before_the_coordinator_is_asked(code: int) -> None:
    program = Program()
    program.do(Lost(program.serve(), code))
    assert every(program.wait(), AskBroker)


def test_a_broker_that_says_elsewhere_is_forgotten() -> None:
    program = Program()
    program.do(Lost(program.serve(), Code.ELSEWHERE))
    program.wait()
    assert every(program.do(CoordinatorFailed()), Open) == []


def test_a_broker_that_never_welcomes_is_given_up() -> None:
    program = Program()
    program.do(Start("secret"))
    program.do(BrokerFound("ws://a"))
    program.do(Opened(1))
    actions = program.wait()
    assert only(actions, Close).connection == 1
    assert program.core.state is ConnectionState.WAITING
    assert program.say(1, welcome()) == []


@pytest.mark.parametrize(("code", "name"), [(Code.UNAUTHORIZED, "unauthorized"), (Code.REPLACED, "replaced")])
def test_a_bad_token_or_another_program_of_the_same_name_ends_it(code: int, name: str) -> None:
    program = Program()
    actions = program.do(Lost(program.serve(), code))
    assert only(actions, Failed).code == name
    assert program.core.state is ConnectionState.STOPPED
    assert program.core.wake() is None


def test_after_a_failure_it_can_be_started_with_another_token() -> None:
    program = Program()
    program.do(Lost(program.serve(held(7, 3)), Code.UNAUTHORIZED))
    program.do(Start("better"))
    program.do(BrokerFound("ws://a"))
    assert asked(program.do(Opened(2)), Login) == Login("better", 1, {7: 3})


def test_a_flood_is_followed_by_a_long_wait() -> None:
    program = Program(Rules(flood_wait=20.0))
    program.do(Lost(program.serve(), Code.FLOOD))
    wake = program.core.wake()
    assert wake is not None
    assert wake >= program.now + 20.0


def waits(program: Program, attempts: int) -> list[float]:
    """The waits before attempts at a broker that never opens."""
    found = []
    program.do(Start("secret"))
    for _ in range(attempts):
        opened = only(program.do(BrokerFound("ws://a")), Open)
        program.do(Lost(opened.connection))
        before = program.now
        program.wait()
        found.append(program.now - before)
    return found


def test_waits_grow_to_a_bound_and_differ_between_programs() -> None:
    rules = Rules(first_wait=1.0, longest_wait=8.0)
    found = waits(Program(rules), 8)
    bounds = [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(found, bounds, strict=True))
    assert found != waits(Program(rules, seed=1), 8)
    assert found == waits(Program(rules), 8)


def test_a_connection_that_served_for_long_is_no_failure() -> None:
    rules = Rules(first_wait=1.0, steady_seconds=5.0)
    program = Program(rules)
    waits(program, 5)
    opened = only(program.do(BrokerFound("ws://a")), Open).connection
    program.do(Opened(opened))
    program.say(opened, welcome())
    program.now += 5.0
    program.do(Lost(opened))
    wake = program.core.wake()
    assert wake is not None
    assert wake <= program.now + 1.0


def test_stopping_acknowledges_logs_out_and_closes() -> None:
    program = Program()
    connection = program.serve(held(7))
    program.say(connection, notes(7, 1))
    program.do(Taken(7, 1))
    actions = program.do(Stop())
    assert asked(actions, Acknowledge).cursors == {7: 1}
    assert asked(actions, Logout) == Logout()
    assert actions[-2:] == [Close(connection), StateChanged(ConnectionState.STOPPED)]
    assert program.core.wake() is None


def test_stopping_while_waiting_ends_the_attempts() -> None:
    program = Program()
    program.do(Lost(program.serve()))
    assert program.do(Stop()) == [StateChanged(ConnectionState.STOPPED)]
    assert program.core.wake() is None
    assert program.do(Tick()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"type":"what"}', '{"type":"notes"}', '{"type":"login","token":"x"}'])
def test_garbage_closes_the_connection_and_another_is_tried(text: str) -> None:
    program = Program()
    connection = program.serve()
    actions = program.do(Received(connection, text))
    assert only(actions, Troubled).code == "unreadable"
    assert only(actions, Close).connection == connection
    assert only(program.wait(), Open).url == "ws://a"


def test_a_broker_that_speaks_out_of_turn_is_left() -> None:
    program = Program()
    program.do(Start("secret"))
    program.do(BrokerFound("ws://a"))
    program.do(Opened(1))
    assert every(program.say(1, Moved("ws://b")), Close)


def test_a_broker_of_a_later_version_is_left() -> None:
    program = Program()
    program.do(Start("secret"))
    program.do(BrokerFound("ws://a"))
    program.do(Opened(1))
    assert every(program.say(1, welcome(version=2)), Close)


def test_an_error_that_answers_nothing_is_told_and_nothing_else() -> None:
    program = Program()
    connection = program.serve()
    assert program.say(connection, Error("odd", "something is odd")) == [Troubled("odd", "something is odd")]
    assert program.core.state is ConnectionState.SERVING


def test_nothing_is_sent_while_there_is_no_connection() -> None:
    program = Program()
    connection = program.serve(held(7))
    program.say(connection, notes(7, 1))
    program.do(Lost(connection))
    assert every(program.do(Taken(7, 1)), Send) == []
    assert sent(program.wait(), Acknowledge) == []


def test_being_replaced_by_an_own_login_that_was_given_up_is_no_failure() -> None:
    program = Program()
    program.do(Start("secret"))
    program.do(BrokerFound("ws://a"))
    program.do(Opened(1))
    program.do(Lost(1))
    program.wait()
    program.do(BrokerFound("ws://a"))
    program.do(Opened(2))
    program.say(2, welcome())
    assert every(program.do(Lost(2, Code.REPLACED)), Failed) == []
    opened = only(program.wait(), Open).connection
    program.do(Opened(opened))
    program.say(opened, welcome())
    assert only(program.do(Lost(opened, Code.REPLACED)), Failed).code == "replaced"

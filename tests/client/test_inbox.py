"""Notes reach the application once and in order, and are acknowledged when taken."""

from __future__ import annotations

from msgspec import Raw

from tests.client.driving import Program, asked, every, held, notes, only, sent, welcome
from tocsin.client.core.actions import Action, Close, ConnectionState, Deliver, Open, Slowed
from tocsin.client.core.events import Lost, Opened, Taken
from tocsin.client.rules import Rules
from tocsin.model.subscriber import Acknowledge, Code, Login, Note, Notes, Renewed, Slow


def executions(actions: list[Action]) -> list[int]:
    return [deliver.note.e for deliver in every(actions, Deliver)]


def reopened(program: Program, connection: int) -> int:
    """Loses the connection and opens the next, on which a login was sent."""
    program.do(Lost(connection))
    opened = only(program.wait(), Open).connection
    program.do(Opened(opened))
    return opened


def test_a_note_is_delivered_as_it_came() -> None:
    program = Program()
    program.serve(held(7))
    note = Note(7, 1, Raw(b'[{"a": 1.50}]'))
    delivered = only(program.say(1, Notes([note])), Deliver)
    assert (delivered.subscription, bytes(delivered.note.payload)) == (7, b'[{"a": 1.50}]')


def test_what_comes_again_is_dropped() -> None:
    program = Program()
    program.serve(held(7))
    assert executions(program.say(1, notes(7, 1, 3, 3, 2, 8))) == [1, 3, 8]
    assert executions(program.say(1, notes(7, 1, 8, 9))) == [9]


def test_what_the_cursor_covers_is_dropped() -> None:
    program = Program()
    program.serve(held(7, 5))
    assert executions(program.say(1, notes(7, 4, 5, 6))) == [6]


def test_subscriptions_are_ordered_each_for_itself() -> None:
    program = Program()
    program.serve(held(7), held(8))
    assert executions(program.say(1, notes(7, 9))) == [9]
    assert executions(program.say(1, notes(8, 2))) == [2]


def test_notes_of_what_is_not_held_are_dropped() -> None:
    program = Program()
    program.serve(held(7))
    assert executions(program.say(1, notes(8, 1))) == []


def test_what_was_found_while_away_is_marked_and_what_is_found_then_is_not() -> None:
    program = Program()
    program.serve(held(7))
    assert not only(program.say(1, notes(7, 1)), Deliver).recovered
    connection = reopened(program, 1)
    program.say(connection, welcome(held(7), newest={"Fires": 3}))
    delivered = every(program.say(connection, notes(7, 1, 2)), Deliver)
    delivered += every(program.say(connection, notes(7, 3, 4)), Deliver)
    assert [(deliver.note.e, deliver.recovered) for deliver in delivered] == [(2, True), (3, True), (4, False)]


def test_a_broker_that_does_not_say_what_is_newest_marks_nothing() -> None:
    program = Program()
    program.serve(held(7))
    connection = reopened(program, 1)
    program.say(connection, welcome(held(7)))
    assert not only(program.say(connection, notes(7, 1)), Deliver).recovered


def test_what_comes_by_another_login_was_not_missed() -> None:
    program = Program(Rules(backlog_notes=1))
    program.serve(held(7))
    program.say(1, notes(7, 1, 2))
    program.do(Taken(7, 1))
    program.do(Opened(2))
    program.say(2, welcome(held(7, 1), newest={"Fires": 2}))
    assert not only(program.say(2, notes(7, 2)), Deliver).recovered


def test_a_login_says_what_was_taken_and_not_what_was_delivered() -> None:
    program = Program()
    program.serve(held(7, 2), held(8, 4))
    program.say(1, notes(7, 3, 4))
    program.do(Taken(7, 3))
    reopened(program, 1)
    assert asked(program.actions, Login).cursors == {7: 3, 8: 4}


def test_an_acknowledgement_goes_out_after_a_while_for_all_that_was_taken() -> None:
    program = Program(Rules(ack_seconds=2.0))
    program.serve(held(7), held(8))
    program.say(1, notes(7, 1, 2))
    program.say(1, notes(8, 5))
    before = program.now
    assert sent(program.do(Taken(7, 1)), Acknowledge) == []
    program.now += 1.0
    program.do(Taken(7, 2))
    program.do(Taken(8, 5))
    assert asked(program.wait(), Acknowledge).cursors == {7: 2, 8: 5}
    assert program.now == before + 2.0
    assert program.core.wake() is None


def test_an_acknowledgement_goes_out_at_once_when_enough_was_taken() -> None:
    program = Program(Rules(ack_notes=3))
    program.serve(held(7))
    program.say(1, notes(7, 1, 2, 3))
    assert asked(program.do(Taken(7, 3)), Acknowledge).cursors == {7: 3}


def test_nothing_is_acknowledged_that_was_not_delivered() -> None:
    program = Program(Rules(ack_notes=1))
    program.serve(held(7))
    assert sent(program.do(Taken(7, 5)), Acknowledge) == []
    program.say(1, notes(7, 1))
    assert asked(program.do(Taken(7, 5)), Acknowledge).cursors == {7: 1}
    assert sent(program.do(Taken(9, 1)), Acknowledge) == []


def test_a_broker_that_missed_an_acknowledgement_gets_it_again() -> None:
    program = Program(Rules(ack_notes=1))
    program.serve(held(7))
    program.say(1, notes(7, 1))
    program.do(Taken(7, 1))
    connection = reopened(program, 1)
    program.say(connection, welcome(held(7, 0)))
    assert asked(program.wait(), Acknowledge).cursors == {7: 1}


def test_a_slow_connection_is_told() -> None:
    program = Program()
    program.serve()
    assert program.say(1, Slow(40)) == [Slowed(40)]


def test_what_does_not_fit_is_fetched_by_another_login_when_the_rest_is_taken() -> None:
    program = Program(Rules(backlog_notes=2))
    program.serve(held(7))
    assert executions(program.say(1, notes(7, 1, 2, 3))) == [1, 2]
    assert every(program.do(Taken(7, 1)), Open) == []
    assert executions(program.say(1, notes(7, 4))) == []
    opened = only(program.do(Taken(7, 2)), Open)
    assert opened == Open(2, "ws://a")
    assert asked(program.do(Opened(2)), Login).cursors == {7: 2}
    assert executions(program.say(1, notes(7, 5))) == []
    assert only(program.say(2, welcome(held(7, 2))), Close).connection == 1
    assert executions(program.say(2, notes(7, 3, 4))) == [3, 4]


def test_being_replaced_by_its_own_next_login_is_no_failure() -> None:
    program = Program(Rules(backlog_notes=1))
    program.serve(held(7))
    program.say(1, notes(7, 1, 2))
    program.do(Taken(7, 1))
    program.do(Opened(2))
    program.do(Lost(1, Code.REPLACED))
    program.say(2, welcome(held(7, 1)))
    assert program.core.state is ConnectionState.SERVING
    assert executions(program.say(2, notes(7, 2))) == [2]


def test_a_login_that_fetches_the_rest_is_not_repeated_in_haste() -> None:
    program = Program(Rules(backlog_notes=1, renew_seconds=4.0))
    program.serve(held(7))
    program.say(1, notes(7, 1, 2))
    program.do(Taken(7, 1))
    before = program.now
    assert every(program.do(Lost(2)), Open) == []
    program.wait()
    while not every(program.actions, Open):
        program.wait()
    assert program.now == before + 4.0


def test_a_full_subscription_does_not_hold_up_the_others() -> None:
    program = Program(Rules(backlog_bytes=20))
    program.serve(held(7), held(8))
    assert executions(program.say(1, notes(7, 1, 2, 3))) == [1, 2]
    assert executions(program.say(1, notes(8, 1))) == [1]


def test_one_note_is_taken_however_large() -> None:
    program = Program(Rules(backlog_bytes=1))
    program.serve(held(7))
    assert executions(program.say(1, notes(7, 1))) == [1]


def test_what_was_dropped_is_asked_for_again_also_under_another_number() -> None:
    program = Program(Rules(backlog_notes=1))
    program.serve(held(7))
    assert executions(program.say(1, notes(7, 1, 2))) == [1]
    program.say(1, Renewed(7, held(8)))
    assert only(program.do(Taken(8, 1)) + program.wait(), Open).connection > 1

"""A subscriber's core when the data cluster is another than before: it goes on, with nothing twice and nothing lost."""

from __future__ import annotations

from msgspec.structs import replace

from tests.client.driving import FIRES, Program, every, held, notes, sent
from tocsin.client.core.actions import Confirmed, Deliver, Ended, Open, RequestRefused
from tocsin.client.core.events import Lost, Opened, Subscribe, Taken
from tocsin.model import subscriber
from tocsin.model.histories import Cursor, Era
from tocsin.model.subscriber import Acknowledge, Held, Login, Renewed

BEFORE, RESTART, COPY = Era("before", 0), Era("restart", 9), Era("copy", 3)


def counted(number: int, cursor: int, incarnation: str) -> Held:
    return replace(held(number, cursor), incarnation=incarnation)


def served(program: Program) -> int:
    return program.serve(counted(7, 0, "before"))


def delivered(program: Program, *executions: int) -> list[int]:
    actions = program.say(1, notes(7, *executions))
    return [deliver.note.e for deliver in every(actions, Deliver)]


def test_after_an_ordinary_restart_nothing_comes_again() -> None:
    program = Program()
    served(program)
    assert delivered(program, 4, 5) == [4, 5]
    program.say(1, Renewed(7, counted(7, 0, "restart"), [BEFORE, RESTART]))
    assert delivered(program, 4, 5, 10) == [10]


def test_after_an_older_copy_was_restored_what_it_finds_comes_though_the_numbers_were_used_before() -> None:
    program = Program()
    served(program)
    assert delivered(program, 3, 4, 5) == [3, 4, 5]
    program.say(1, Renewed(7, counted(7, 0, "copy"), [BEFORE, COPY]))
    assert delivered(program, 3, 4, 5) == [4, 5]


def test_what_the_application_took_of_the_other_history_is_not_acknowledged_in_this_one() -> None:
    program = Program()
    served(program)
    delivered(program, 3, 4, 5)
    program.say(1, Renewed(7, counted(7, 0, "copy"), [BEFORE, COPY]))
    again = program.say(1, notes(7, 4, 5))
    program.do(Taken(7, 5))
    program.wait()
    assert sent(program.actions, Acknowledge) == [Acknowledge({7: Cursor(3, "copy")})]
    program.do(Taken(7, 5, every(again, Deliver)[-1].epoch))
    program.wait()
    assert sent(program.actions, Acknowledge) == [Acknowledge({7: Cursor(5, "copy")})]


def test_a_login_says_under_which_incarnation_its_cursors_count() -> None:
    program = Program()
    connection = served(program)
    delivered(program, 4)
    program.do(Taken(7, 4))
    program.do(Lost(connection))
    program.wait()
    program.do(Opened(every(program.actions, Open)[0].connection))
    assert sent(program.actions, Login)[0].cursors == {7: Cursor(4, "before")}


def test_a_subscription_goes_on_under_another_number() -> None:
    program = Program()
    program.serve()
    program.do(Subscribe(1, "Fires", FIRES))
    request = sent(program.actions, subscriber.Subscribe)[0]
    program.confirm(1, request, 7)
    actions = program.say(1, Renewed(7, counted(1007, 0, "new"), [Era("new", 0)]))
    assert [action.held.subscription for action in every(actions, Confirmed)] == [1007]
    assert every(actions, Ended) == [Ended(7)]
    assert [deliver.note.e for deliver in every(program.say(1, notes(1007, 1)), Deliver)] == [1]


def test_a_dropped_channel_ends_the_subscription_and_says_why() -> None:
    program = Program()
    program.serve()
    program.do(Subscribe(1, "Fires", FIRES))
    program.confirm(1, sent(program.actions, subscriber.Subscribe)[0], 7)
    actions = program.say(1, subscriber.Ended(7, "gone", "channel Fires was dropped"))
    assert every(actions, RequestRefused) == [RequestRefused(1, "gone", "channel Fires was dropped")]
    assert every(actions, Ended) == [Ended(7)]
    assert every(program.say(1, notes(7, 1)), Deliver) == []

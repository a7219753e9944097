"""The control protocol's core: requests in turn, answers that are true when sent, notices in between."""

from __future__ import annotations

import msgspec
import pytest

from tocsin.data.control import actions, events
from tocsin.data.control.core import ControlCore, Position
from tocsin.model import control
from tocsin.model.histories import Cursor, Era
from tocsin.model.messages import ProblemDetails, Pulled
from tocsin.model.terms import Terms

GROUP = Terms(groups=("crew",))


class World:
    """A core that was welcomed, and channels whose positions a test sets."""

    def __init__(self, most: int = 100) -> None:
        self.channels = {"c": Position(4, [Era("one", 0)])}
        self.core = ControlCore("north", self, most)
        assert self.told(events.Opened()) == [control.Welcome("north")]
        assert self.told(events.Writable()) == []

    def position(self, channel: str) -> Position | None:
        return self.channels.get(channel)

    def do(self, event: events.Event) -> list[actions.Action]:
        return self.core.handle(event)

    def ask(self, request: control.Request) -> list[actions.Action]:
        return self.do(events.Received(msgspec.json.encode(request)))

    def told(self, event: events.Event) -> list[control.ControlMessage]:
        return [action.message for action in self.do(event) if isinstance(action, actions.Send)]

    def execute(self, execution: int, *bes: int) -> list[control.ControlMessage]:
        return self.told(events.Noticed(control.Executed("c", execution, list(bes))))


@pytest.fixture
def world() -> World:
    return World()


ATTACH, PULL = control.Attach(1, "c", [{"v": 1}]), control.Pull(2, "c", 1, 9)
SUBSCRIBED = events.Subscribed("c", [7], [{"v": 1}], [0.5], 4.0)


def part(more: bool = False) -> events.PartRead:
    return events.PartRead(Pulled([], more, 9, 1, {}))


def test_nothing_is_told_before_the_welcome_was_taken() -> None:
    core = ControlCore("north", World())
    assert core.handle(events.Noticed(control.Dropped("c"))) == []
    assert core.handle(events.Opened()) == [actions.Send(control.Welcome("north"))]
    assert core.handle(events.Writable()) == [actions.Send(control.Dropped("c"))]


def test_requests_are_carried_out_one_after_the_other_as_they_came(world: World) -> None:
    assert world.ask(ATTACH) == [actions.CarryOut(ATTACH)]
    detach = control.Detach(2, [7])
    assert world.ask(detach) == []
    assert world.ask(control.Ping(3)) == []
    assert [type(each) for each in world.told(SUBSCRIBED)] == [control.Attached]
    assert not world.core.idle
    assert world.do(events.Writable()) == [actions.CarryOut(detach)]
    assert world.told(events.Unsubscribed(1)) == [control.Detached(2, 1)]
    assert world.told(events.Writable()) == [control.Pong(3)]
    world.do(events.Writable())
    assert world.core.idle


def test_an_answer_says_how_far_the_channel_is_when_it_is_sent_not_when_it_was_asked_for(world: World) -> None:
    world.ask(ATTACH)
    assert world.execute(5, 7) == [control.Executed("c", 5, [7])]
    assert world.do(SUBSCRIBED) == []
    world.channels["c"] = Position(6, [Era("one", 0)], GROUP)
    [attached] = world.told(events.Writable())
    assert attached == control.Attached(1, [7], 6, GROUP, "c", [{"v": 1}], [Era("one", 0)], [0.5], 4.0)


@pytest.mark.parametrize("now", [None, Position(1, [Era("one", 0), Era("two", -1)])])
def test_a_channel_that_was_dropped_meanwhile_is_gone_also_if_there_is_another_of_that_name(
    world: World, now: Position | None
) -> None:
    for request, outcome in ((ATTACH, SUBSCRIBED), (PULL, part(more=True))):
        world.channels["c"] = Position(4, [Era("one", 0)])
        world.ask(request)
        world.channels = {"c": now} if now else {}
        [gone] = world.told(outcome)
        assert isinstance(gone, control.Error)
        assert (gone.code, gone.id) == ("gone", request.id)
        assert world.do(events.Writable()) == [], "nothing of it is read any more"
        assert world.core.idle


def test_a_channel_that_is_created_while_it_is_asked_for_can_be_had(world: World) -> None:
    position = world.channels.pop("c")
    world.ask(ATTACH)
    world.channels["c"] = position
    assert isinstance(world.told(SUBSCRIBED)[0], control.Attached)


def test_a_part_is_read_when_the_one_before_was_taken(world: World) -> None:
    world.ask(PULL)
    assert world.told(part(more=True)) == [control.Results(2, [], "one", True, 9)]
    assert world.do(events.Writable()) == [actions.ReadOn()]
    assert world.told(part()) == [control.Results(2, [], "one", False, 9)]
    assert world.do(events.Writable()) == []
    assert world.core.idle


def test_answers_and_notices_take_turns(world: World) -> None:
    world.ask(PULL)
    world.execute(5, 7)
    for execution in (6, 7):
        assert world.execute(execution, 7) == []
    world.do(part(more=True))
    assert [type(each) for each in world.told(events.Writable())] == [control.Results]
    did = world.do(events.Writable())
    assert did == [actions.ReadOn(), actions.Send(control.Executed("c", 6, [7]))]
    world.do(part())
    assert [type(each) for each in world.told(events.Writable())] == [control.Results]
    assert world.told(events.Writable()) == [control.Executed("c", 7, [7])]


def test_what_waits_too_long_is_folded_and_what_is_being_sent_is_not() -> None:
    world = World(most=4)
    assert world.execute(5, 7) == [control.Executed("c", 5, [7])]
    for execution in (6, 7, 8):
        world.execute(execution, 7)
    assert world.told(events.Writable()) == [control.Behind("c", 6, 8)]


def test_what_the_storage_refuses_is_answered_and_the_next_request_begun(world: World) -> None:
    world.ask(PULL)
    world.ask(ATTACH)
    problem = ProblemDetails("busy", "too much", retry_after=2.0)
    assert world.told(events.RequestFailed(problem)) == [control.Error("busy", "too much", 2, 2.0)]
    assert world.do(events.Writable()) == [actions.CarryOut(ATTACH)]


@pytest.mark.parametrize(("text", "id"), [(b"no JSON", None), (b'{"type":"dance","id":4}', 4), ("[]", None)])
def test_what_cannot_be_read_is_answered_in_its_turn(world: World, text: bytes | str, id: int | None) -> None:
    world.ask(ATTACH)
    assert world.do(events.Received(text)) == []
    world.do(SUBSCRIBED)
    [error] = world.told(events.Writable())
    assert isinstance(error, control.Error)
    assert (error.code, error.id) == ("invalid", id)


def test_what_a_broker_knows_is_compared_once_it_has_attached(world: World) -> None:
    request = msgspec.structs.replace(ATTACH, known=Cursor(9, "before"))
    world.ask(request)
    assert world.do(SUBSCRIBED)[0] == actions.CompareHistories("c", Cursor(9, "before"))

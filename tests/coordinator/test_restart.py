"""The coordinator may end at any time; another one goes on where it was."""

from __future__ import annotations

import pytest

from tests.coordinator.desk import Desk, held
from tocsin.coordinator.answers import Located
from tocsin.coordinator.events import Balance, Drain, RequestBroker
from tocsin.coordinator.store.records import Assignment
from tocsin.model.coordination import (
    Absent,
    Arrived,
    Handover,
    Keep,
    Load,
    Prepare,
    Prepared,
    Progress,
    Release,
    StayId,
)


@pytest.fixture
def desk() -> Desk:
    """Ann is on "a" with subscription 7, and is to go to "b"."""
    desk = Desk()
    desk.hello("a")
    desk.settle("ann", 7)
    desk.hello("b")
    for broker in "ab":
        desk.say(broker, Load(0.0, 0.0))
    desk.handle(Drain(0, "a"))
    desk.wait(0.1)
    assert desk.place("ann") == Assignment("ann", "a", 1, "b", 2)
    return desk


def test_a_move_is_taken_up_with_its_first_message(desk: Desk) -> None:
    desk.restart()
    desk.hello("a", serving=[StayId("ann", 1)])
    assert desk.sole(desk.hello("b"), Prepare) == ("b", Prepare("ann", 2, [held(7)]))
    assert desk.sole(desk.say("b", Prepared("ann", 2)), Handover)[0] == "a"
    desk.say("a", Absent("ann", 1))
    assert desk.place("ann") == Assignment("ann", "b", 2, None, 2)


def test_an_arrival_that_nobody_heard_of_is_seen(desk: Desk) -> None:
    desk.say("b", Prepared("ann", 2))
    desk.restart()
    desk.hello("b", serving=[StayId("ann", 2)])
    assert desk.place("ann") == Assignment("ann", "b", 2, None, 2)
    assert desk.sole(desk.hello("a", serving=[StayId("ann", 1)]), Release)[1] == Release("ann", 1)


def test_a_move_to_a_broker_that_does_not_return_is_given_up(desk: Desk) -> None:
    desk.restart()
    desk.hello("a", serving=[StayId("ann", 1)])
    desk.wait(desk.limits.returning)
    assert desk.place("ann") == Assignment("ann", "a", 1, None, 2)


def test_brokers_have_time_to_return(desk: Desk) -> None:
    desk.restart()
    desk.wait(desk.limits.returning - 0.1)
    desk.hello("b", prepared=[StayId("ann", 2)])
    desk.say("b", Prepared("ann", 2))
    assert desk.place("ann").broker == "a"


def test_every_broker_is_told_once_what_it_should_hold(desk: Desk) -> None:
    desk.say("a", Keep(5, "ann", 1, held(8)))
    desk.restart()
    again = desk.sent(desk.hello("a", serving=[StayId("ann", 1)]), Prepare)
    assert again == [("a", Prepare("ann", 1, [held(7), held(8)]))]
    desk.say("a", Prepared("ann", 1))
    assert not desk.sent(desk.hello("a", serving=[StayId("ann", 1)]), Prepare)


def test_what_was_known_is_known(desk: Desk) -> None:
    token = desk.token("ann")
    desk.say("a", Progress({"ann": {7: 9}}))
    desk.handle(Balance(0, False))
    desk.restart()
    state = desk.store.read()
    assert (state.balancing, [broker.draining for broker in state.brokers]) == (False, [True, False])
    desk.hello("b")
    desk.say("b", Prepared("ann", 2))
    assert desk.answer(desk.handle(RequestBroker(1, token))) == Located("b", "ws://b")


def test_a_stay_newer_than_any_known_is_believed(desk: Desk) -> None:
    desk.restart()
    desk.hello("c", serving=[StayId("ann", 9), StayId("bob", 4)])
    assert desk.place("ann") == Assignment("ann", "c", 9, None, 9)
    assert desk.place("bob") == Assignment("bob", "c", 4, None, 4)
    assert desk.sole(desk.hello("b", prepared=[StayId("ann", 2)]), Release)[1] == Release("ann", 2)


def test_a_number_that_some_broker_has_seen_is_not_given_again() -> None:
    desk = Desk()
    assert desk.sole(desk.hello("a", prepared=[StayId("ann", 9)]), Release)[1] == Release("ann", 9)
    assert desk.sole(desk.request("ann"), Prepare)[1].stay == 10


def test_a_first_placement_is_finished() -> None:
    desk = Desk()
    desk.hello("a")
    desk.request("ann")
    desk.restart()
    desk.hello("a", prepared=[StayId("ann", 1)])
    desk.say("a", Prepared("ann", 1))
    desk.say("a", Arrived("ann", 1))
    assert desk.place("ann") == Assignment("ann", "a", 1, None, 1)


@pytest.mark.parametrize("stay", [2**63 - 1, 2**62, 2**33])
@pytest.mark.parametrize("how", ["serving", "prepared"])
def test_a_stay_that_nobody_can_have_given_out_is_only_released(how: str, stay: int) -> None:
    desk = Desk()
    desk.hello("a")
    desk.settle("ann", 1)
    desk.hello("b")
    said = desk.hello("a", **{how: [StayId("ann", stay), StayId("nobody", stay)]})
    released = {(at, told.subscriber, told.stay) for at, told in desk.sent(said, Release)}
    assert released == {("a", "ann", stay), ("a", "nobody", stay)}
    assert (desk.place("ann").broker, desk.place("ann").stay) == ("a", 1)
    assert desk.sole(desk.request("nobody"), Prepare)[1].stay == 1
    desk.restart()
    desk.hello("a", serving=[StayId("ann", 1)])
    assert desk.answer(desk.request("ann")) == Located("a", "ws://a")

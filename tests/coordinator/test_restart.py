"""The coordinator may end at any time; another one goes on where it was."""

from __future__ import annotations

import pytest

from tests.coordinator.manual import ManualCoordinator, held
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
def coordinator() -> ManualCoordinator:
    """Ann is on "a" with subscription 7, and is to go to "b"."""
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.settle("ann", 7)
    coordinator.hello("b")
    for broker in "ab":
        coordinator.say(broker, Load(0.0, 0.0))
    coordinator.handle(Drain(0, "a"))
    coordinator.wait(0.1)
    assert coordinator.assignment("ann") == Assignment("ann", "a", 1, "b", 2)
    return coordinator


def test_a_move_is_taken_up_with_its_first_message(coordinator: ManualCoordinator) -> None:
    coordinator.restart()
    coordinator.hello("a", serving=[StayId("ann", 1)])
    assert coordinator.sole(coordinator.hello("b"), Prepare) == ("b", Prepare("ann", 2, [held(7)]))
    assert coordinator.sole(coordinator.say("b", Prepared("ann", 2)), Handover)[0] == "a"
    coordinator.say("a", Absent("ann", 1))
    assert coordinator.assignment("ann") == Assignment("ann", "b", 2, None, 2)


def test_an_arrival_that_nobody_heard_of_is_seen(coordinator: ManualCoordinator) -> None:
    coordinator.say("b", Prepared("ann", 2))
    coordinator.restart()
    coordinator.hello("b", serving=[StayId("ann", 2)])
    assert coordinator.assignment("ann") == Assignment("ann", "b", 2, None, 2)
    assert coordinator.sole(coordinator.hello("a", serving=[StayId("ann", 1)]), Release)[1] == Release("ann", 1)


def test_a_move_to_a_broker_that_does_not_return_is_given_up(coordinator: ManualCoordinator) -> None:
    coordinator.restart()
    coordinator.hello("a", serving=[StayId("ann", 1)])
    coordinator.wait(coordinator.limits.returning)
    assert coordinator.assignment("ann") == Assignment("ann", "a", 1, None, 2)


def test_brokers_have_time_to_return(coordinator: ManualCoordinator) -> None:
    coordinator.restart()
    coordinator.wait(coordinator.limits.returning - 0.1)
    coordinator.hello("b", prepared=[StayId("ann", 2)])
    coordinator.say("b", Prepared("ann", 2))
    assert coordinator.assignment("ann").broker == "a"


def test_every_broker_is_told_once_what_it_should_hold(coordinator: ManualCoordinator) -> None:
    coordinator.say("a", Keep(5, "ann", 1, held(8)))
    coordinator.restart()
    again = coordinator.sent(coordinator.hello("a", serving=[StayId("ann", 1)]), Prepare)
    assert again == [("a", Prepare("ann", 1, [held(7), held(8)]))]
    coordinator.say("a", Prepared("ann", 1))
    assert not coordinator.sent(coordinator.hello("a", serving=[StayId("ann", 1)]), Prepare)


def test_what_was_known_is_known(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("ann")
    coordinator.say("a", Progress({"ann": {7: 9}}))
    coordinator.handle(Balance(0, False))
    coordinator.restart()
    state = coordinator.store.read()
    assert (state.balancing, [broker.draining for broker in state.brokers]) == (False, [True, False])
    coordinator.hello("b")
    coordinator.say("b", Prepared("ann", 2))
    assert coordinator.answer(coordinator.handle(RequestBroker(1, token))) == Located("b", "ws://b")


def test_a_stay_newer_than_any_known_is_believed(coordinator: ManualCoordinator) -> None:
    coordinator.restart()
    coordinator.hello("c", serving=[StayId("ann", 9), StayId("bob", 4)])
    assert coordinator.assignment("ann") == Assignment("ann", "c", 9, None, 9)
    assert coordinator.assignment("bob") == Assignment("bob", "c", 4, None, 4)
    assert coordinator.sole(coordinator.hello("b", prepared=[StayId("ann", 2)]), Release)[1] == Release("ann", 2)


def test_a_number_that_some_broker_has_seen_is_not_given_again() -> None:
    coordinator = ManualCoordinator()
    assert coordinator.sole(coordinator.hello("a", prepared=[StayId("ann", 9)]), Release)[1] == Release("ann", 9)
    assert coordinator.sole(coordinator.request("ann"), Prepare)[1].stay == 10


def test_a_first_placement_is_finished() -> None:
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.request("ann")
    coordinator.restart()
    coordinator.hello("a", prepared=[StayId("ann", 1)])
    coordinator.say("a", Prepared("ann", 1))
    coordinator.say("a", Arrived("ann", 1))
    assert coordinator.assignment("ann") == Assignment("ann", "a", 1, None, 1)


@pytest.mark.parametrize("stay", [2**63 - 1, 2**62, 2**33])
@pytest.mark.parametrize("how", ["serving", "prepared"])
def test_a_stay_that_nobody_can_have_given_out_is_only_released(how: str, stay: int) -> None:
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.settle("ann", 1)
    coordinator.hello("b")
    said = coordinator.hello("a", **{how: [StayId("ann", stay), StayId("nobody", stay)]})
    released = {(at, told.subscriber, told.stay) for at, told in coordinator.sent(said, Release)}
    assert released == {("a", "ann", stay), ("a", "nobody", stay)}
    assert (coordinator.assignment("ann").broker, coordinator.assignment("ann").stay) == ("a", 1)
    assert coordinator.sole(coordinator.request("nobody"), Prepare)[1].stay == 1
    coordinator.restart()
    coordinator.hello("a", serving=[StayId("ann", 1)])
    assert coordinator.answer(coordinator.request("ann")) == Located("a", "ws://a")

"""A broker that dies is noticed in time, and its subscribers go on elsewhere from their cursors."""

from __future__ import annotations

from tests.coordinator.manual import ManualCoordinator, held
from tocsin.coordinator.actions import Close, Send
from tocsin.coordinator.answers import Located, NetworkStatus
from tocsin.coordinator.events import AskStatus, Lost, Received
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.store.records import Assignment
from tocsin.model.coordination import (
    Accepted,
    Hello,
    Load,
    Prepare,
    Prepared,
    Presence,
    Progress,
    Refused,
    Release,
    StayId,
    Unprepared,
)


def pair(**limits: int) -> ManualCoordinator:
    """Ann is on "a" with subscription 7; "b" is there too."""
    coordinator = ManualCoordinator(CoordinatorLimits(**limits))
    coordinator.hello("a")
    coordinator.settle("ann", 7)
    coordinator.hello("b")
    return coordinator


def test_the_defaults_notice_within_three_seconds() -> None:
    assert CoordinatorLimits().grace <= 3
    assert CoordinatorLimits().silence <= 3


def test_subscribers_of_a_dead_broker_go_on_from_their_cursors() -> None:
    coordinator = pair()
    coordinator.say("a", Progress({"ann": {7: 40}}))
    coordinator.handle(Lost(coordinator.links.pop("a")))
    assert coordinator.wait(coordinator.limits.grace - 0.01) == []
    assert coordinator.sole(coordinator.wait(0.01), Prepare) == ("b", Prepare("ann", 2, [held(7, 40)]))
    coordinator.say("b", Prepared("ann", 2))
    assert coordinator.assignment("ann") == Assignment("ann", "b", 2, None, 2)


def test_a_broker_that_returns_in_time_keeps_everybody() -> None:
    coordinator = pair()
    coordinator.handle(Lost(coordinator.links["a"]))
    coordinator.wait(coordinator.limits.grace / 2)
    assert coordinator.messages(coordinator.hello("a", serving=[StayId("ann", 1)])) == [
        Accepted(coordinator.store.keyring().trust)
    ]
    assert coordinator.wait(10) == []


def test_a_silent_broker_is_dead_though_connected() -> None:
    coordinator = pair()
    coordinator.muted.add("a")
    actions = coordinator.wait(coordinator.limits.silence)
    assert Close(coordinator.links["a"]) in actions
    assert coordinator.sole(actions, Prepare)[0] == "b"


def test_whoever_was_on_a_broker_that_returns_from_the_dead_counts_again() -> None:
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.settle("ann", 7)
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.wait(coordinator.limits.grace + 1)
    coordinator.hello("a", serving=[StayId("ann", 1)])
    coordinator.say("a", Load(100.0, 100.0, {7: 100.0}))
    status = coordinator.answer(coordinator.handle(AskStatus(1)))
    assert isinstance(status, NetworkStatus)
    assert [broker.load for broker in status.brokers] == [200.0]


def test_a_broker_taken_for_dead_is_told_to_release_when_it_returns() -> None:
    coordinator = pair()
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.wait(coordinator.limits.grace)
    coordinator.say("b", Prepared("ann", 2))
    assert coordinator.sole(coordinator.hello("a", serving=[StayId("ann", 1)]), Release) == ("a", Release("ann", 1))


def test_a_broker_that_returns_before_its_subscribers_have_gone_tells_them() -> None:
    coordinator = pair()
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.wait(coordinator.limits.grace)
    coordinator.hello("a", serving=[StayId("ann", 1)])
    coordinator.say("b", Prepared("ann", 2))
    assert coordinator.assignment("ann").broker == "a"


def test_a_broker_that_restarts_is_given_back_whom_it_had() -> None:
    coordinator = pair()
    coordinator.handle(Lost(coordinator.links["a"]))
    assert coordinator.sole(coordinator.hello("a"), Prepare) == ("a", Prepare("ann", 1, [held(7)]))


def test_a_broker_that_cannot_take_them_back_at_once_is_asked_again() -> None:
    coordinator = pair()
    coordinator.handle(Lost(coordinator.links["a"]))
    coordinator.hello("a")
    coordinator.say("a", Unprepared("ann", 1, "no data cluster"))
    assert coordinator.sole(coordinator.wait(coordinator.limits.retry), Prepare) == ("a", Prepare("ann", 1, [held(7)]))


def test_without_another_broker_they_wait_for_one() -> None:
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.settle("ann", 7)
    coordinator.handle(Lost(coordinator.links.pop("a")))
    assert coordinator.wait(20) == []
    assert coordinator.sole(coordinator.hello("c"), Prepare) == ("c", Prepare("ann", 2, [held(7)]))


def test_one_whom_a_broker_refuses_is_tried_again() -> None:
    coordinator = pair()
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.wait(coordinator.limits.grace)
    coordinator.say("b", Unprepared("ann", 2, "full"))
    assert coordinator.sole(coordinator.wait(coordinator.limits.retry), Prepare) == ("b", Prepare("ann", 3, [held(7)]))


def test_the_homeless_are_placed_a_few_at_a_time() -> None:
    coordinator = ManualCoordinator(CoordinatorLimits(in_flight=2))
    coordinator.hello("a")
    for name in ("ann", "bob", "eve"):
        coordinator.settle(name)
    coordinator.hello("b")
    coordinator.handle(Lost(coordinator.links.pop("a")))
    assert len(coordinator.sent(coordinator.wait(coordinator.limits.grace), Prepare)) == 2
    assert coordinator.sole(coordinator.say("b", Prepared("ann", 2)), Prepare)[1].subscriber == "eve"


def test_whoever_asks_need_not_wait_in_line() -> None:
    coordinator = ManualCoordinator(CoordinatorLimits(in_flight=1))
    coordinator.hello("a")
    for name in ("ann", "bob", "eve"):
        coordinator.settle(name)
    coordinator.hello("b")
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.wait(coordinator.limits.grace)
    assert coordinator.sole(coordinator.request("eve"), Prepare)[1].subscriber == "eve"
    assert coordinator.answer(coordinator.say("b", Prepared("eve", 2))) == Located("b", "ws://b")


def test_the_homeless_are_spread_and_not_heaped() -> None:
    coordinator = ManualCoordinator(placement="least-loaded")
    coordinator.hello("a")
    for n in range(8):
        coordinator.settle(f"p{n}", n)
    coordinator.say("a", Load(0.0, 0.0, dict.fromkeys(range(8), 100.0)))
    coordinator.hello("b")
    coordinator.hello("c")
    coordinator.handle(Lost(coordinator.links.pop("a")))
    brokers = [broker for broker, _ in coordinator.sent(coordinator.wait(coordinator.limits.grace), Prepare)]
    assert sorted(brokers) == ["b"] * 4 + ["c"] * 4


def test_a_broker_that_comes_twice_is_heard_on_the_newer_link() -> None:
    coordinator = pair()
    old = coordinator.links["a"]
    assert Close(old) in coordinator.hello("a", serving=[StayId("ann", 1)])
    assert Close(old) in coordinator.handle(Received(old, Load(1.0, 1.0)))
    coordinator.handle(Lost(old))
    assert coordinator.wait(10) == []


def test_a_link_begins_with_hello() -> None:
    coordinator = ManualCoordinator()
    said, closed = coordinator.handle(Received(5, Presence(["ann"])))
    assert isinstance(said, Send)
    assert isinstance(said.message, Refused)
    assert closed == Close(5)


def test_a_link_belongs_to_one_broker() -> None:
    coordinator = pair()
    actions = coordinator.say("a", Hello("c", "ws://c"))
    assert Close(coordinator.links["a"]) in actions


def test_a_broker_without_capacity_is_refused() -> None:
    coordinator = ManualCoordinator()
    actions = coordinator.handle(Received(5, Hello("a", "ws://a", capacity=0.0)))
    assert Close(5) in actions
    assert coordinator.store.read().brokers == []


def test_impossible_rates_are_passed_over() -> None:
    coordinator = pair()
    coordinator.say("a", Load(0.0, 0.0, {7: -1.0, 8: float("nan"), 9: float("inf")}))
    assert coordinator.wait(10) == []

"""A broker that dies is noticed in time, and its subscribers go on elsewhere from their cursors."""

from __future__ import annotations

from tests.coordinator.desk import Desk, held
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


def pair(**limits: int) -> Desk:
    """Ann is on "a" with subscription 7; "b" is there too."""
    desk = Desk(CoordinatorLimits(**limits))
    desk.hello("a")
    desk.settle("ann", 7)
    desk.hello("b")
    return desk


def test_the_defaults_notice_within_three_seconds() -> None:
    assert CoordinatorLimits().grace <= 3
    assert CoordinatorLimits().silence <= 3


def test_subscribers_of_a_dead_broker_go_on_from_their_cursors() -> None:
    desk = pair()
    desk.say("a", Progress({"ann": {7: 40}}))
    desk.handle(Lost(desk.links.pop("a")))
    assert desk.wait(desk.limits.grace - 0.01) == []
    assert desk.sole(desk.wait(0.01), Prepare) == ("b", Prepare("ann", 2, [held(7, 40)]))
    desk.say("b", Prepared("ann", 2))
    assert desk.place("ann") == Assignment("ann", "b", 2, None, 2)


def test_a_broker_that_returns_in_time_keeps_everybody() -> None:
    desk = pair()
    desk.handle(Lost(desk.links["a"]))
    desk.wait(desk.limits.grace / 2)
    assert desk.messages(desk.hello("a", serving=[StayId("ann", 1)])) == [Accepted(desk.store.keyring().trust)]
    assert desk.wait(10) == []


def test_a_silent_broker_is_dead_though_connected() -> None:
    desk = pair()
    desk.muted.add("a")
    actions = desk.wait(desk.limits.silence)
    assert Close(desk.links["a"]) in actions
    assert desk.sole(actions, Prepare)[0] == "b"


def test_whoever_was_on_a_broker_that_returns_from_the_dead_counts_again() -> None:
    desk = Desk()
    desk.hello("a")
    desk.settle("ann", 7)
    desk.handle(Lost(desk.links.pop("a")))
    desk.wait(desk.limits.grace + 1)
    desk.hello("a", serving=[StayId("ann", 1)])
    desk.say("a", Load(100.0, 100.0, {7: 100.0}))
    status = desk.answer(desk.handle(AskStatus(1)))
    assert isinstance(status, NetworkStatus)
    assert [broker.load for broker in status.brokers] == [200.0]


def test_a_broker_taken_for_dead_is_told_to_release_when_it_returns() -> None:
    desk = pair()
    desk.handle(Lost(desk.links.pop("a")))
    desk.wait(desk.limits.grace)
    desk.say("b", Prepared("ann", 2))
    assert desk.sole(desk.hello("a", serving=[StayId("ann", 1)]), Release) == ("a", Release("ann", 1))


def test_a_broker_that_returns_before_its_subscribers_have_gone_tells_them() -> None:
    desk = pair()
    desk.handle(Lost(desk.links.pop("a")))
    desk.wait(desk.limits.grace)
    desk.hello("a", serving=[StayId("ann", 1)])
    desk.say("b", Prepared("ann", 2))
    assert desk.place("ann").broker == "a"


def test_a_broker_that_restarts_is_given_back_whom_it_had() -> None:
    desk = pair()
    desk.handle(Lost(desk.links["a"]))
    assert desk.sole(desk.hello("a"), Prepare) == ("a", Prepare("ann", 1, [held(7)]))


def test_a_broker_that_cannot_take_them_back_at_once_is_asked_again() -> None:
    desk = pair()
    desk.handle(Lost(desk.links["a"]))
    desk.hello("a")
    desk.say("a", Unprepared("ann", 1, "no data cluster"))
    assert desk.sole(desk.wait(desk.limits.retry), Prepare) == ("a", Prepare("ann", 1, [held(7)]))


def test_without_another_broker_they_wait_for_one() -> None:
    desk = Desk()
    desk.hello("a")
    desk.settle("ann", 7)
    desk.handle(Lost(desk.links.pop("a")))
    assert desk.wait(20) == []
    assert desk.sole(desk.hello("c"), Prepare) == ("c", Prepare("ann", 2, [held(7)]))


def test_one_whom_a_broker_refuses_is_tried_again() -> None:
    desk = pair()
    desk.handle(Lost(desk.links.pop("a")))
    desk.wait(desk.limits.grace)
    desk.say("b", Unprepared("ann", 2, "full"))
    assert desk.sole(desk.wait(desk.limits.retry), Prepare) == ("b", Prepare("ann", 3, [held(7)]))


def test_the_homeless_are_placed_a_few_at_a_time() -> None:
    desk = Desk(CoordinatorLimits(in_flight=2))
    desk.hello("a")
    for name in ("ann", "bob", "eve"):
        desk.settle(name)
    desk.hello("b")
    desk.handle(Lost(desk.links.pop("a")))
    assert len(desk.sent(desk.wait(desk.limits.grace), Prepare)) == 2
    assert desk.sole(desk.say("b", Prepared("ann", 2)), Prepare)[1].subscriber == "eve"


def test_whoever_asks_need_not_wait_in_line() -> None:
    desk = Desk(CoordinatorLimits(in_flight=1))
    desk.hello("a")
    for name in ("ann", "bob", "eve"):
        desk.settle(name)
    desk.hello("b")
    desk.handle(Lost(desk.links.pop("a")))
    desk.wait(desk.limits.grace)
    assert desk.sole(desk.request("eve"), Prepare)[1].subscriber == "eve"
    assert desk.answer(desk.say("b", Prepared("eve", 2))) == Located("b", "ws://b")


def test_the_homeless_are_spread_and_not_heaped() -> None:
    desk = Desk(placement="least-loaded")
    desk.hello("a")
    for n in range(8):
        desk.settle(f"p{n}", n)
    desk.say("a", Load(0.0, 0.0, dict.fromkeys(range(8), 100.0)))
    desk.hello("b")
    desk.hello("c")
    desk.handle(Lost(desk.links.pop("a")))
    brokers = [broker for broker, _ in desk.sent(desk.wait(desk.limits.grace), Prepare)]
    assert sorted(brokers) == ["b"] * 4 + ["c"] * 4


def test_a_broker_that_comes_twice_is_heard_on_the_newer_link() -> None:
    desk = pair()
    old = desk.links["a"]
    assert Close(old) in desk.hello("a", serving=[StayId("ann", 1)])
    assert Close(old) in desk.handle(Received(old, Load(1.0, 1.0)))
    desk.handle(Lost(old))
    assert desk.wait(10) == []


def test_a_link_begins_with_hello() -> None:
    desk = Desk()
    said, closed = desk.handle(Received(5, Presence(["ann"])))
    assert isinstance(said, Send)
    assert isinstance(said.message, Refused)
    assert closed == Close(5)


def test_a_link_belongs_to_one_broker() -> None:
    desk = pair()
    actions = desk.say("a", Hello("c", "ws://c"))
    assert Close(desk.links["a"]) in actions


def test_a_broker_without_capacity_is_refused() -> None:
    desk = Desk()
    actions = desk.handle(Received(5, Hello("a", "ws://a", capacity=0.0)))
    assert Close(5) in actions
    assert desk.store.read().brokers == []


def test_impossible_rates_are_passed_over() -> None:
    desk = pair()
    desk.say("a", Load(0.0, 0.0, {7: -1.0, 8: float("nan"), 9: float("inf")}))
    assert desk.wait(10) == []

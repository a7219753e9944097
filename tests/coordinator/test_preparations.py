"""Brokers are asked to prepare no faster than they answer, and no slower."""

from __future__ import annotations

from tests.coordinator.desk import Desk
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.model.coordination import Prepare, Prepared

ONE_AT_A_TIME = CoordinatorLimits(preparing_bytes=1)


def asked(desk: Desk) -> Desk:
    desk.hello("a")
    assert len(desk.sent(desk.request("p0"), Prepare)) == 1
    return desk


def test_who_is_next_waits_for_the_answer_about_the_last() -> None:
    desk = asked(Desk(ONE_AT_A_TIME))
    assert desk.sent(desk.request("p1"), Prepare) == []
    said = desk.say("a", Prepared("p0", 1))
    assert [prepare.subscriber for _, prepare in desk.sent(said, Prepare)] == ["p1"]


def test_an_answer_counts_though_nobody_waits_for_it() -> None:
    desk = asked(Desk(ONE_AT_A_TIME))
    desk.say("a", Prepared("p0", 1))
    assert len(desk.sent(desk.request("p1"), Prepare)) == 1


def test_what_is_never_answered_holds_others_up_only_for_a_while() -> None:
    desk = asked(Desk(ONE_AT_A_TIME))
    desk.wait(desk.limits.preparing / 2)
    desk.request("p1")
    sent = desk.sent(desk.wait(desk.limits.preparing / 2), Prepare)
    assert [prepare.subscriber for _, prepare in sent] == ["p1"]

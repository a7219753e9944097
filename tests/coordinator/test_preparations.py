"""Brokers are asked to prepare no faster than they answer, and no slower."""

from __future__ import annotations

from tests.coordinator.manual import ManualCoordinator
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.model.coordination import Prepare, Prepared

ONE_AT_A_TIME = CoordinatorLimits(preparing_bytes=1)


def asked(coordinator: ManualCoordinator) -> ManualCoordinator:
    coordinator.hello("a")
    assert len(coordinator.sent(coordinator.request("p0"), Prepare)) == 1
    return coordinator


def test_who_is_next_waits_for_the_answer_about_the_last() -> None:
    coordinator = asked(ManualCoordinator(ONE_AT_A_TIME))
    assert coordinator.sent(coordinator.request("p1"), Prepare) == []
    said = coordinator.say("a", Prepared("p0", 1))
    assert [prepare.subscriber for _, prepare in coordinator.sent(said, Prepare)] == ["p1"]


def test_an_answer_counts_though_nobody_waits_for_it() -> None:
    coordinator = asked(ManualCoordinator(ONE_AT_A_TIME))
    coordinator.say("a", Prepared("p0", 1))
    assert len(coordinator.sent(coordinator.request("p1"), Prepare)) == 1


def test_what_is_never_answered_holds_others_up_only_for_a_while() -> None:
    coordinator = asked(ManualCoordinator(ONE_AT_A_TIME))
    coordinator.wait(coordinator.limits.preparing / 2)
    coordinator.request("p1")
    sent = coordinator.sent(coordinator.wait(coordinator.limits.preparing / 2), Prepare)
    assert [prepare.subscriber for _, prepare in sent] == ["p1"]

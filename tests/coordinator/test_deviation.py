"""Loads planned and measured are compared all the time: a large difference that lasts is named."""

from __future__ import annotations

import pytest
from msgspec import json

from tests.coordinator.manual import ManualCoordinator
from tocsin.coordinator.answers import NetworkStatus
from tocsin.coordinator.deviation import Deviation, relative_deviation
from tocsin.coordinator.events import AskStatus, Lost
from tocsin.model.coordination import Load, Presence

SPAN = 60.0


@pytest.fixture
def coordinator() -> ManualCoordinator:
    """Two brokers, on each a subscriber to the same 100 B/s: 200 B/s are planned for each."""
    coordinator = ManualCoordinator()
    for name in ("a", "b"):
        coordinator.hello(name)
    for name in ("ann", "bob"):
        arrive(coordinator, name, 7)
    for name in ("a", "b"):
        coordinator.say(name, Load(100.0, 100.0, {7: 100.0}, SPAN))
    return coordinator


def arrive(coordinator: ManualCoordinator, subscriber: str, subscription: int) -> None:
    """A subscriber comes and stays."""
    assignment = coordinator.settle(subscriber, subscription)
    coordinator.say(str(assignment.broker), Presence([subscriber]))


def report(
    coordinator: ManualCoordinator, seconds: float, measured: float, broker: str = "a", other: float = 200.0
) -> None:
    """Reports every two seconds, for a while."""
    for _ in range(int(seconds / 2)):
        coordinator.wait(2.0)
        coordinator.say(broker, Load(measured / 2, measured / 2, {}, SPAN))
        coordinator.say("b", Load(other / 2, other / 2, {}, SPAN))


def status(coordinator: ManualCoordinator) -> NetworkStatus:
    answer = coordinator.answer(coordinator.handle(AskStatus(1)))
    assert isinstance(answer, NetworkStatus)
    return answer


def test_what_is_as_planned_is_no_problem(coordinator: ManualCoordinator) -> None:
    report(coordinator, 600.0, 190.0)
    line = status(coordinator).brokers[0]
    assert [line.planned, line.deviation] == pytest.approx([200.0, -0.05])
    assert status(coordinator).problems == coordinator.core.problems == []


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (100.0, "broker a measures 100 B/s where 200 B/s are planned: it handles less"),
        (300.0, "broker a measures 300 B/s where 200 B/s are planned: it handles more"),
    ],
)
def test_a_large_difference_is_named_once_it_has_lasted_for_two_spans(
    coordinator: ManualCoordinator, measured: float, said: str
) -> None:
    report(coordinator, 2 * SPAN, measured)
    assert status(coordinator).problems == []
    report(coordinator, 4.0, measured)
    [problem] = status(coordinator).problems
    assert problem.startswith(said)
    assert coordinator.core.problems == [problem]
    report(coordinator, 2.0, 200.0)
    assert status(coordinator).problems == []
    report(coordinator, 2 * SPAN, measured)
    assert status(coordinator).problems == []


def test_what_is_little_to_the_others_is_no_problem(coordinator: ManualCoordinator) -> None:
    arrive(coordinator, "cid", 8)
    coordinator.say("a", Load(1.0, 1.0, {8: 1_000_000.0}, SPAN))
    report(coordinator, 600.0, 2_000_200.0, other=400.0)
    assert coordinator.core.problems == []


def test_the_planned_load_follows_a_change_as_the_measured_one_does(coordinator: ManualCoordinator) -> None:
    report(coordinator, 10 * SPAN, 200.0)
    coordinator.say("a", Load(100.0, 100.0, {7: 1000.0}, SPAN))
    report(coordinator, SPAN, 1338.0)
    line = status(coordinator).brokers[0]
    assert [line.load, line.planned] == pytest.approx([2000.0, 2000.0 - 1800.0 * 0.368], rel=0.01)
    assert line.deviation == pytest.approx(0.0, abs=0.01)


def test_of_a_broker_that_is_not_connected_nothing_is_said(coordinator: ManualCoordinator) -> None:
    report(coordinator, 3 * SPAN, 100.0)
    assert len(coordinator.core.problems) == 1
    coordinator.handle(Lost(coordinator.links["a"]))
    assert coordinator.core.problems == []


def test_a_broker_that_was_away_for_long_is_compared_anew() -> None:
    deviation = Deviation()
    for now in range(0, 200, 2):
        deviation.report(float(now), Load(10.0, 10.0, {}, SPAN), 200.0, 200.0)
    assert deviation.problem
    deviation.report(1000.0, Load(10.0, 10.0, {}, SPAN), 500.0, 200.0)
    assert (deviation.planned, deviation.problem) == (500.0, False)


@pytest.mark.parametrize("span", [0.0, -5.0, 1e300])
def test_a_span_that_cannot_be_hurts_nobody(span: float) -> None:
    deviation = Deviation()
    for now in (1.0, 2.0, 2.0, 1e9):
        deviation.report(now, Load(10.0, 10.0, {}, span), 20.0, 20.0)
    assert deviation.planned == pytest.approx(20.0)


def test_a_broker_that_has_and_plans_nothing_deviates_by_nothing() -> None:
    assert relative_deviation(0.0, 0.0) == 0.0


def test_programs_read_the_difference_as_people_do(coordinator: ManualCoordinator) -> None:
    report(coordinator, 600.0, 150.0)
    [first, _] = json.decode(json.encode(status(coordinator)))["brokers"]
    assert [first["planned"], first["deviation"]] == pytest.approx([200.0, -0.25])


def test_next_to_nothing_is_no_problem(coordinator: ManualCoordinator) -> None:
    for _ in range(200):
        coordinator.wait(2.0)
        coordinator.say("a", Load(4.0, 4.0, {7: 0.0}, SPAN))
        coordinator.say("b", Load(0.0, 0.0, {7: 0.0}, SPAN))
    assert coordinator.core.problems == []

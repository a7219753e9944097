"""Who has no connection weighs nothing after a while; who comes back weighs at once."""

from __future__ import annotations

import pytest

from tests.coordinator.manual import START, ManualCoordinator, held
from tocsin.coordinator import presence
from tocsin.coordinator.answers import Located
from tocsin.coordinator.events import Drain, Lost, RegisterUser, RequestBroker
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.presence import HOUR
from tocsin.coordinator.store.records import Assignment, PutAssignment, PutBroker, PutHeld
from tocsin.coordinator.store.records import BrokerRecord as Record
from tocsin.model.coordination import Absent, Arrived, Handover, Keep, Load, Prepare, Prepared, Presence, StayId

GRACE = CoordinatorLimits().presence
DAY = 86_400.0


@pytest.fixture
def coordinator() -> ManualCoordinator:
    """Ann on "a" with a subscription of 100 B/s, connected; "b" is empty."""
    return furnished(CoordinatorLimits())


@pytest.fixture
def slow() -> ManualCoordinator:
    """The same where days pass quickly, as nothing looks at the clock more often than that."""
    return furnished(CoordinatorLimits(silence=DAY, interval=DAY))


def furnished(limits: CoordinatorLimits) -> ManualCoordinator:
    coordinator = ManualCoordinator(limits=limits)
    coordinator.hello("a")
    coordinator.hello("b")
    coordinator.settle("ann", 1)
    coordinator.say("a", Load(0.0, 0.0, {1: 100.0}))
    coordinator.say("a", Presence(["ann"]))
    return coordinator


def loads(coordinator: ManualCoordinator) -> list[float]:
    """What brokers weigh, in the order in which they came."""
    return list(coordinator.core._parts.workload.live.figures().loads.tolist())


def weighs(coordinator: ManualCoordinator, name: str) -> bool:
    """Whether somebody does."""
    return name not in coordinator.core._parts.workload._suspended


def test_whoever_is_away_weighs_nothing_and_stays_seated(coordinator: ManualCoordinator) -> None:
    assert loads(coordinator) == [200.0, 0.0]
    coordinator.say("a", Presence(offline=["ann"]))
    coordinator.wait(GRACE - 1)
    assert loads(coordinator) == [200.0, 0.0]
    coordinator.wait(2)
    assert loads(coordinator) == [0.0, 0.0]
    assert coordinator.core._parts.workload.live.population.tolist() == [1, 0]
    assert coordinator.assignment("ann").broker == "a"


def test_whoever_comes_back_weighs_at_once(coordinator: ManualCoordinator) -> None:
    coordinator.say("a", Presence(offline=["ann"]))
    coordinator.wait(GRACE + 1)
    coordinator.say("a", Presence(["ann"]))
    assert loads(coordinator) == [200.0, 0.0]


def test_whoever_asks_for_a_broker_is_about_to_come(coordinator: ManualCoordinator) -> None:
    coordinator.say("a", Presence(offline=["ann"]))
    coordinator.wait(GRACE + 1)
    assert coordinator.answer(coordinator.request("ann")) == Located("a", "ws://a")
    assert loads(coordinator) == [200.0, 0.0]
    coordinator.wait(GRACE + 1)
    assert loads(coordinator) == [0.0, 0.0], "it did not come after all"


def test_whoever_only_asks_where_to_connect_weighs_once_and_not_for_ever(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("ann")
    coordinator.say("a", Presence(offline=["ann"]))
    for _ in range(10):
        coordinator.wait(GRACE / 2)
        coordinator.handle(RequestBroker(7, token))
    assert loads(coordinator) == [0.0, 0.0], "nothing is sent to who does not come"
    coordinator.say("a", Presence(["ann"]))
    assert loads(coordinator) == [200.0, 0.0]
    coordinator.say("a", Presence(offline=["ann"]))
    coordinator.wait(GRACE + 1)
    coordinator.handle(RequestBroker(7, token))
    assert loads(coordinator) == [200.0, 0.0], "it came when it had asked before"


def test_a_reconnection_in_time_changes_nothing(
    coordinator: ManualCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[str] = []
    monkeypatch.setattr(coordinator.core._parts.workload.live, "suspend", lambda _: changed.append("suspended"))
    monkeypatch.setattr(coordinator.core._parts.workload.live, "resume", lambda _: changed.append("resumed"))
    for _ in range(10):
        coordinator.say("a", Presence(offline=["ann"]))
        coordinator.wait(GRACE - 1)
        coordinator.say("a", Presence(["ann"]))
        coordinator.wait(GRACE - 1)
    assert changed == []
    assert weighs(coordinator, "ann")


def test_a_lost_link_makes_nobody_weightless_at_once(coordinator: ManualCoordinator) -> None:
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.wait(1)
    coordinator.hello("a", serving=[StayId("ann", 1)])
    coordinator.wait(GRACE - 2)
    assert loads(coordinator) == [200.0, 0.0]
    coordinator.say("a", Presence(["ann"]))
    coordinator.wait(2 * GRACE)
    assert loads(coordinator) == [200.0, 0.0]


def test_after_a_start_everybody_weighs_until_the_time_of_grace_is_over(coordinator: ManualCoordinator) -> None:
    coordinator.settle("bob", 1)
    coordinator.restart()
    coordinator.hello("a", serving=[StayId("ann", 1)])
    coordinator.hello("b", serving=[StayId("bob", 1)])
    coordinator.say("a", Load(0.0, 0.0, {1: 100.0}))
    coordinator.say("a", Presence(["ann"]))
    assert loads(coordinator) == [200.0, 200.0]
    coordinator.wait(GRACE + 1)
    assert loads(coordinator) == [200.0, 0.0]


def test_only_ones_own_broker_says_who_is_there(coordinator: ManualCoordinator) -> None:
    coordinator.say("b", Presence(["ann", *(f"nobody-{n}" for n in range(100))]))
    assert not coordinator.core._parts.registry.member("b").online
    coordinator.say("b", Presence(offline=["ann"]))
    coordinator.wait(2 * GRACE)
    assert weighs(coordinator, "ann")


def test_whoever_has_moved_is_there_by_the_word_of_the_new_broker(coordinator: ManualCoordinator) -> None:
    coordinator.handle(Drain(0, "a"))
    coordinator.say("b", Load(0.0, 0.0))
    coordinator.say("a", Load(0.0, 0.0))
    coordinator.wait(6)
    coordinator.say("b", Prepared("ann", 2))
    coordinator.say("b", Arrived("ann", 2))
    coordinator.say("a", Presence(offline=["ann"]))
    coordinator.wait(1)
    coordinator.say("b", Presence(["ann"]))
    coordinator.wait(2 * GRACE)
    assert loads(coordinator) == [0.0, 200.0]


def test_what_somebody_away_subscribes_to_or_gives_up_counts_when_it_is_back(coordinator: ManualCoordinator) -> None:
    coordinator.say("a", Presence(offline=["ann"]))
    coordinator.wait(GRACE + 1)
    coordinator.say("a", Keep(5, "ann", 1, held(2)))
    coordinator.say("a", Keep(6, "ann", 1, held(1), gone=True))
    coordinator.say("a", Load(0.0, 0.0, {2: 30.0}))
    assert loads(coordinator) == [0.0, 0.0]
    coordinator.say("a", Presence(["ann"]))
    assert loads(coordinator) == [60.0, 0.0]


def test_a_drained_broker_is_left_by_those_who_are_away_too(coordinator: ManualCoordinator) -> None:
    coordinator.say("a", Presence(offline=["ann"]))
    coordinator.wait(GRACE + 1)
    coordinator.handle(Drain(0, "a"))
    for broker in "ab":
        coordinator.say(broker, Load(0.0, 0.0))
    assert coordinator.sole(coordinator.wait(6), Prepare)[0] == "b"
    assert coordinator.sole(coordinator.say("b", Prepared("ann", 2)), Handover)[0] == "a"
    coordinator.say("a", Absent("ann", 1))
    assert coordinator.assignment("ann").broker == "b"
    assert loads(coordinator) == [0.0, 0.0]


def test_when_somebody_was_seen_is_stored_once_an_hour(coordinator: ManualCoordinator) -> None:
    first = coordinator.record("ann").seen
    for _ in range(20):
        coordinator.wait(HOUR / 10)
        coordinator.say("a", Presence(offline=["ann"]))
        coordinator.say("a", Presence(["ann"]))
    seen = coordinator.record("ann").seen
    assert first == START
    assert 0 <= coordinator.now - seen <= HOUR


def test_whoever_stays_connected_for_days_is_seen_all_the_time(slow: ManualCoordinator) -> None:
    slow.wait(3 * DAY)
    assert slow.now - slow.record("ann").seen <= 2 * HOUR


def test_a_hundred_thousand_who_do_not_come_are_dealt_with_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "AT_ONCE", 10)
    coordinator = ManualCoordinator()
    people = [Assignment(f"p{n}", "a", 1, None, 1, START) for n in range(100)]
    coordinator.store.write([PutBroker(Record("a", "ws://a"))])
    coordinator.store.write([PutAssignment(assignment) for assignment in people])
    coordinator.store.write([PutHeld(assignment.subscriber, held(n)) for n, assignment in enumerate(people)])
    coordinator.restart()
    coordinator.hello("a", serving=[StayId(assignment.subscriber, 1) for assignment in people])
    sizes: list[int] = []
    parts = coordinator.core._parts
    suspend = parts.workload.suspend

    def counted(names: list[str]) -> None:
        sizes.append(len(names))
        suspend(names)

    monkeypatch.setattr(parts.workload, "suspend", counted)
    coordinator.wait(GRACE + 1)
    assert max(sizes) == 10
    assert sum(sizes) == 100
    assert len(coordinator.core._parts.workload.live.subscriptions) == 0


@pytest.fixture
def strict() -> ManualCoordinator:
    """Whoever has not come for ten days is removed."""
    coordinator = ManualCoordinator(limits=CoordinatorLimits(expiry=10 * DAY, silence=DAY, interval=DAY))
    coordinator.hello("a")
    return coordinator


def test_whoever_has_not_come_for_long_is_removed(strict: ManualCoordinator) -> None:
    strict.settle("ann", 1)
    strict.settle("bob", 1)
    strict.handle(RegisterUser(0, "never"))
    strict.say("a", Presence(["ann", "bob"]))
    strict.say("a", Presence(offline=["bob"]))
    strict.wait(9 * DAY)
    assert not strict.record("bob").gone
    strict.wait(2 * DAY)
    assert strict.record("bob").gone
    assert strict.record("never").gone
    assert not strict.record("ann").gone, "it is connected"
    assert list(strict.store.read().held) == ["ann"]


def test_whoever_asks_for_a_broker_has_come_even_if_it_is_not_connected_then(strict: ManualCoordinator) -> None:
    strict.settle("ann", 1)
    strict.say("a", Presence(["ann"]))
    strict.say("a", Presence(offline=["ann"]))
    token = strict.token("ann")
    for _ in range(3):
        strict.wait(9.9 * DAY)
        strict.handle(RequestBroker(7, token))
    strict.wait(9 * DAY)
    assert not strict.record("ann").gone
    assert list(strict.store.read().held["ann"]) == [1]
    strict.wait(2 * DAY)
    assert strict.record("ann").gone


def test_nobody_is_kept_by_others_who_ask_in_vain(strict: ManualCoordinator) -> None:
    strict.settle("ann", 1)
    strict.settle("bob", 1)
    strict.say("a", Presence(["ann", "bob"]))
    strict.say("a", Presence(offline=["ann"]))
    strict.wait(DAY)
    strict.say("a", Presence(offline=["bob"]))
    token = strict.token("ann")
    for _ in range(20):
        strict.wait(DAY)
        strict.handle(RequestBroker(7, token))
    assert strict.record("bob").gone
    assert not strict.record("ann").gone


def test_a_start_removes_nobody_who_is_connected_though_it_was_long_stored(strict: ManualCoordinator) -> None:
    strict.store.write(
        [
            PutAssignment(Assignment("ann", "a", 1, None, 1, START)),
            PutAssignment(Assignment("bob", "a", 1, None, 1, START)),
        ]
    )
    strict.now += 20 * DAY
    strict.restart()
    strict.hello("a", serving=[StayId("ann", 1), StayId("bob", 1)])
    strict.say("a", Presence(["ann"]))
    strict.wait(GRACE + 10)
    assert not strict.record("ann").gone
    assert strict.record("bob").gone


def test_of_whom_nothing_is_known_the_time_begins_now(strict: ManualCoordinator) -> None:
    strict.store.write([PutAssignment(Assignment("old", "a", 1, None, 1))])
    strict.now += 20 * DAY
    strict.restart()
    strict.hello("a", serving=[StayId("old", 1)])
    strict.wait(9 * DAY)
    assert not strict.record("old").gone
    strict.wait(2 * DAY)
    assert strict.record("old").gone


def test_by_default_nobody_is_removed(slow: ManualCoordinator) -> None:
    token = slow.token("ann")
    slow.say("a", Presence(offline=["ann"]))
    slow.wait(25 * DAY)
    assert slow.answer(slow.handle(RequestBroker(0, token))) == Located("a", "ws://a")

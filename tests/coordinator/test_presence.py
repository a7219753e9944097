"""Who has no connection weighs nothing after a while; who comes back weighs at once."""

from __future__ import annotations

import pytest

from tests.coordinator.desk import START, Desk, held
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
def desk() -> Desk:
    """Ann on "a" with a subscription of 100 B/s, connected; "b" is empty."""
    return furnished(CoordinatorLimits())


@pytest.fixture
def slow() -> Desk:
    """The same where days pass quickly, as nothing looks at the clock more often than that."""
    return furnished(CoordinatorLimits(silence=DAY, interval=DAY))


def furnished(limits: CoordinatorLimits) -> Desk:
    desk = Desk(limits=limits)
    desk.hello("a")
    desk.hello("b")
    desk.settle("ann", 1)
    desk.say("a", Load(0.0, 0.0, {1: 100.0}))
    desk.say("a", Presence(["ann"]))
    return desk


def loads(desk: Desk) -> list[float]:
    """What brokers weigh, in the order in which they came."""
    return list(desk.core._parts.workload.live.figures().loads.tolist())


def weighs(desk: Desk, name: str) -> bool:
    """Whether somebody does."""
    return name not in desk.core._parts.workload._suspended


def test_whoever_is_away_weighs_nothing_and_stays_seated(desk: Desk) -> None:
    assert loads(desk) == [200.0, 0.0]
    desk.say("a", Presence(offline=["ann"]))
    desk.wait(GRACE - 1)
    assert loads(desk) == [200.0, 0.0]
    desk.wait(2)
    assert loads(desk) == [0.0, 0.0]
    assert desk.core._parts.workload.live.population.tolist() == [1, 0]
    assert desk.place("ann").broker == "a"


def test_whoever_comes_back_weighs_at_once(desk: Desk) -> None:
    desk.say("a", Presence(offline=["ann"]))
    desk.wait(GRACE + 1)
    desk.say("a", Presence(["ann"]))
    assert loads(desk) == [200.0, 0.0]


def test_whoever_asks_for_a_broker_is_about_to_come(desk: Desk) -> None:
    desk.say("a", Presence(offline=["ann"]))
    desk.wait(GRACE + 1)
    assert desk.answer(desk.request("ann")) == Located("a", "ws://a")
    assert loads(desk) == [200.0, 0.0]
    desk.wait(GRACE + 1)
    assert loads(desk) == [0.0, 0.0], "it did not come after all"


def test_whoever_only_asks_where_to_connect_weighs_once_and_not_for_ever(desk: Desk) -> None:
    token = desk.token("ann")
    desk.say("a", Presence(offline=["ann"]))
    for _ in range(10):
        desk.wait(GRACE / 2)
        desk.handle(RequestBroker(7, token))
    assert loads(desk) == [0.0, 0.0], "nothing is sent to who does not come"
    desk.say("a", Presence(["ann"]))
    assert loads(desk) == [200.0, 0.0]
    desk.say("a", Presence(offline=["ann"]))
    desk.wait(GRACE + 1)
    desk.handle(RequestBroker(7, token))
    assert loads(desk) == [200.0, 0.0], "it came when it had asked before"


def test_a_reconnection_in_time_changes_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[str] = []
    monkeypatch.setattr(desk.core._parts.workload.live, "suspend", lambda _: changed.append("suspended"))
    monkeypatch.setattr(desk.core._parts.workload.live, "resume", lambda _: changed.append("resumed"))
    for _ in range(10):
        desk.say("a", Presence(offline=["ann"]))
        desk.wait(GRACE - 1)
        desk.say("a", Presence(["ann"]))
        desk.wait(GRACE - 1)
    assert changed == []
    assert weighs(desk, "ann")


def test_a_lost_link_makes_nobody_weightless_at_once(desk: Desk) -> None:
    desk.handle(Lost(desk.links.pop("a")))
    desk.wait(1)
    desk.hello("a", serving=[StayId("ann", 1)])
    desk.wait(GRACE - 2)
    assert loads(desk) == [200.0, 0.0]
    desk.say("a", Presence(["ann"]))
    desk.wait(2 * GRACE)
    assert loads(desk) == [200.0, 0.0]


def test_after_a_start_everybody_weighs_until_the_time_of_grace_is_over(desk: Desk) -> None:
    desk.settle("bob", 1)
    desk.restart()
    desk.hello("a", serving=[StayId("ann", 1)])
    desk.hello("b", serving=[StayId("bob", 1)])
    desk.say("a", Load(0.0, 0.0, {1: 100.0}))
    desk.say("a", Presence(["ann"]))
    assert loads(desk) == [200.0, 200.0]
    desk.wait(GRACE + 1)
    assert loads(desk) == [200.0, 0.0]


def test_only_ones_own_broker_says_who_is_there(desk: Desk) -> None:
    desk.say("b", Presence(["ann", *(f"nobody-{n}" for n in range(100))]))
    assert not desk.core._parts.registry.member("b").online
    desk.say("b", Presence(offline=["ann"]))
    desk.wait(2 * GRACE)
    assert weighs(desk, "ann")


def test_whoever_has_moved_is_there_by_the_word_of_the_new_broker(desk: Desk) -> None:
    desk.handle(Drain(0, "a"))
    desk.say("b", Load(0.0, 0.0))
    desk.say("a", Load(0.0, 0.0))
    desk.wait(6)
    desk.say("b", Prepared("ann", 2))
    desk.say("b", Arrived("ann", 2))
    desk.say("a", Presence(offline=["ann"]))
    desk.wait(1)
    desk.say("b", Presence(["ann"]))
    desk.wait(2 * GRACE)
    assert loads(desk) == [0.0, 200.0]


def test_what_somebody_away_subscribes_to_or_gives_up_counts_when_it_is_back(desk: Desk) -> None:
    desk.say("a", Presence(offline=["ann"]))
    desk.wait(GRACE + 1)
    desk.say("a", Keep(5, "ann", 1, held(2)))
    desk.say("a", Keep(6, "ann", 1, held(1), gone=True))
    desk.say("a", Load(0.0, 0.0, {2: 30.0}))
    assert loads(desk) == [0.0, 0.0]
    desk.say("a", Presence(["ann"]))
    assert loads(desk) == [60.0, 0.0]


def test_a_drained_broker_is_left_by_those_who_are_away_too(desk: Desk) -> None:
    desk.say("a", Presence(offline=["ann"]))
    desk.wait(GRACE + 1)
    desk.handle(Drain(0, "a"))
    for broker in "ab":
        desk.say(broker, Load(0.0, 0.0))
    assert desk.sole(desk.wait(6), Prepare)[0] == "b"
    assert desk.sole(desk.say("b", Prepared("ann", 2)), Handover)[0] == "a"
    desk.say("a", Absent("ann", 1))
    assert desk.place("ann").broker == "b"
    assert loads(desk) == [0.0, 0.0]


def test_when_somebody_was_seen_is_stored_once_an_hour(desk: Desk) -> None:
    first = desk.record("ann").seen
    for _ in range(20):
        desk.wait(HOUR / 10)
        desk.say("a", Presence(offline=["ann"]))
        desk.say("a", Presence(["ann"]))
    seen = desk.record("ann").seen
    assert first == START
    assert 0 <= desk.now - seen <= HOUR


def test_whoever_stays_connected_for_days_is_seen_all_the_time(slow: Desk) -> None:
    slow.wait(3 * DAY)
    assert slow.now - slow.record("ann").seen <= 2 * HOUR


def test_a_hundred_thousand_who_do_not_come_are_dealt_with_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "AT_ONCE", 10)
    desk = Desk()
    people = [Assignment(f"p{n}", "a", 1, None, 1, START) for n in range(100)]
    desk.store.write([PutBroker(Record("a", "ws://a"))])
    desk.store.write([PutAssignment(place) for place in people])
    desk.store.write([PutHeld(place.subscriber, held(n)) for n, place in enumerate(people)])
    desk.restart()
    desk.hello("a", serving=[StayId(place.subscriber, 1) for place in people])
    sizes: list[int] = []
    parts = desk.core._parts
    suspend = parts.workload.suspend

    def counted(names: list[str]) -> None:
        sizes.append(len(names))
        suspend(names)

    monkeypatch.setattr(parts.workload, "suspend", counted)
    desk.wait(GRACE + 1)
    assert max(sizes) == 10
    assert sum(sizes) == 100
    assert len(desk.core._parts.workload.live.subscriptions) == 0


@pytest.fixture
def strict() -> Desk:
    """Whoever has not come for ten days is removed."""
    desk = Desk(limits=CoordinatorLimits(expiry=10 * DAY, silence=DAY, interval=DAY))
    desk.hello("a")
    return desk


def test_whoever_has_not_come_for_long_is_removed(strict: Desk) -> None:
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


def test_whoever_asks_for_a_broker_has_come_even_if_it_is_not_connected_then(strict: Desk) -> None:
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


def test_nobody_is_kept_by_others_who_ask_in_vain(strict: Desk) -> None:
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


def test_a_start_removes_nobody_who_is_connected_though_it_was_long_stored(strict: Desk) -> None:
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


def test_of_whom_nothing_is_known_the_time_begins_now(strict: Desk) -> None:
    strict.store.write([PutAssignment(Assignment("old", "a", 1, None, 1))])
    strict.now += 20 * DAY
    strict.restart()
    strict.hello("a", serving=[StayId("old", 1)])
    strict.wait(9 * DAY)
    assert not strict.record("old").gone
    strict.wait(2 * DAY)
    assert strict.record("old").gone


def test_by_default_nobody_is_removed(slow: Desk) -> None:
    token = slow.token("ann")
    slow.say("a", Presence(offline=["ann"]))
    slow.wait(25 * DAY)
    assert slow.answer(slow.handle(RequestBroker(0, token))) == Located("a", "ws://a")

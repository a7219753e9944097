"""A move is make before break: nobody is let go before they are somewhere else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.coordinator.manual import ManualCoordinator, held
from tocsin.coordinator.actions import Action, Send, StoreBatch
from tocsin.coordinator.answers import Located
from tocsin.coordinator.events import BatchStored, Drain, Lost, Received, RequestBroker
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.store.records import Assignment
from tocsin.errors import UnavailableError
from tocsin.model.coordination import (
    Absent,
    Arrived,
    Handover,
    Keep,
    Kept,
    Load,
    Prepare,
    Prepared,
    Progress,
    Refused,
    Release,
    Released,
    StayId,
    Unprepared,
)


@pytest.fixture
def coordinator() -> ManualCoordinator:
    """Ann is on "a" with subscription 7; "b" is there too."""
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    assert coordinator.settle("ann", 7) == Assignment("ann", "a", 1, None, 1)
    coordinator.hello("b")
    for broker in "ab":
        coordinator.say(broker, Load(0.0, 0.0, {7: 100.0}))
    return coordinator


def drained(coordinator: ManualCoordinator) -> list[Action]:
    """Makes the coordinator move ann from "a" to "b"."""
    return coordinator.handle(Drain(0, "a")) + coordinator.wait(0.1)


def told(coordinator: ManualCoordinator) -> list[Action]:
    """The same, until ann is told."""
    drained(coordinator)
    return coordinator.say("b", Prepared("ann", 2))


def test_the_destination_is_prepared_with_subscriptions_and_cursors(coordinator: ManualCoordinator) -> None:
    coordinator.say("a", Progress({"ann": {7: 40}}))
    assert coordinator.sent(drained(coordinator), Prepare) == [("b", Prepare("ann", 2, [held(7, 40)]))]


def test_the_source_tells_the_subscriber_once_the_destination_is_prepared(coordinator: ManualCoordinator) -> None:
    assert not coordinator.sent(drained(coordinator), Handover)
    assert coordinator.messages(coordinator.say("b", Prepared("ann", 2))) == [Handover("ann", 1, "ws://b")]
    assert coordinator.assignment("ann").broker == "a"


def test_the_source_is_released_when_the_subscriber_has_arrived(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    assert coordinator.sent(coordinator.say("b", Arrived("ann", 2)), Release) == [("a", Release("ann", 1))]
    assert coordinator.assignment("ann") == Assignment("ann", "b", 2, None, 2)


def test_the_new_assignment_is_stored_before_the_source_is_released(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    link = coordinator.links["b"]
    (store,) = coordinator.core.handle(coordinator.now, Received(link, Arrived("ann", 2)))
    assert isinstance(store, StoreBatch)
    assert Send(coordinator.links["a"], Release("ann", 1)) in coordinator.core.handle(
        coordinator.now, BatchStored(store.batch)
    )


def test_the_number_of_a_stay_is_stored_before_anybody_hears_it(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("bob")
    (store,) = coordinator.core.handle(coordinator.now, RequestBroker(7, token))
    assert isinstance(store, StoreBatch)
    (send,) = coordinator.core.handle(coordinator.now, BatchStored(store.batch))
    assert isinstance(send, Send)
    assert isinstance(send.message, Prepare)


def test_an_absent_subscriber_is_moved_without_being_told(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    assert coordinator.sent(coordinator.say("a", Absent("ann", 1)), Release) == [("a", Release("ann", 1))]
    assert coordinator.assignment("ann").broker == "b"


def test_a_subscriber_that_never_comes_stays_where_it_was(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.handle(Drain(0, "a", on=False))
    assert coordinator.sent(coordinator.wait(coordinator.limits.arriving), Release) == [("b", Release("ann", 2))]
    assert coordinator.assignment("ann") == Assignment("ann", "a", 1, None, 2)


def test_a_destination_that_never_answers_is_given_up(coordinator: ManualCoordinator) -> None:
    drained(coordinator)
    coordinator.handle(Drain(0, "a", on=False))
    assert coordinator.sent(coordinator.wait(coordinator.limits.preparing), Release) == [("b", Release("ann", 2))]


def test_a_destination_that_cannot_is_not_waited_for(coordinator: ManualCoordinator) -> None:
    drained(coordinator)
    coordinator.say("b", Unprepared("ann", 2, "full"))
    assert coordinator.assignment("ann") == Assignment("ann", "a", 1, None, 2)


def test_the_next_try_has_a_number_of_its_own(coordinator: ManualCoordinator) -> None:
    drained(coordinator)
    coordinator.say("b", Unprepared("ann", 2, "full"))
    assert coordinator.sole(coordinator.wait(coordinator.limits.interval), Prepare)[1].stay == 3


def test_whoever_comes_too_late_is_sent_away(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.handle(Drain(0, "a", on=False))
    coordinator.wait(coordinator.limits.arriving)
    assert coordinator.messages(coordinator.say("b", Arrived("ann", 2))) == [Release("ann", 2)]
    assert coordinator.assignment("ann").broker == "a"


def test_messages_may_be_said_twice(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    assert coordinator.messages(coordinator.say("b", Prepared("ann", 2))) == []
    coordinator.say("b", Arrived("ann", 2))
    assert coordinator.messages(coordinator.say("b", Arrived("ann", 2))) == []
    assert coordinator.messages(coordinator.say("a", Absent("ann", 1))) == [Release("ann", 1)]
    assert coordinator.assignment("ann") == Assignment("ann", "b", 2, None, 2)


def test_a_source_that_dies_need_not_tell_anybody(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.wait(coordinator.limits.grace)
    assert coordinator.assignment("ann") == Assignment("ann", "b", 2, None, 2)


def test_a_destination_that_dies_is_given_up(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.handle(Lost(coordinator.links.pop("b")))
    coordinator.wait(coordinator.limits.grace)
    assert coordinator.assignment("ann") == Assignment("ann", "a", 1, None, 2)


def test_a_destination_that_returns_is_asked_again(coordinator: ManualCoordinator) -> None:
    drained(coordinator)
    coordinator.handle(Lost(coordinator.links["b"]))
    assert coordinator.sole(coordinator.hello("b"), Prepare) == ("b", Prepare("ann", 2, [held(7)]))


def test_a_destination_that_returns_with_the_subscriber_has_it(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.handle(Lost(coordinator.links["b"]))
    coordinator.hello("b", serving=[StayId("ann", 2)])
    assert coordinator.assignment("ann").broker == "b"


def test_a_source_that_returns_tells_again(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.handle(Lost(coordinator.links["a"]))
    assert coordinator.sole(coordinator.hello("a", serving=[StayId("ann", 1)]), Handover)[1].stay == 1


def test_cursors_of_the_source_count_when_it_lets_go(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.say("b", Arrived("ann", 2))
    coordinator.say("a", Released("ann", 1, {7: 12, 99: 3}))
    assert coordinator.store.read().held["ann"] == {7: held(7, 12)}


def test_a_broker_that_comes_back_from_the_dead_says_how_far_those_are_who_have_left_it(
    coordinator: ManualCoordinator,
) -> None:
    coordinator.muted.add("a")
    coordinator.wait(5)
    coordinator.say("b", Prepared("ann", 2))
    assert coordinator.assignment("ann").broker == "b"
    coordinator.hello("a", serving=[StayId("ann", 1)])
    coordinator.say("a", Released("ann", 1, {7: 12}))
    assert coordinator.store.read().held["ann"] == {7: held(7, 12)}


def test_a_destination_where_the_subscriber_came_too_late_says_how_far_it_is(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.wait(30)
    assert coordinator.assignment("ann").broker == "a"
    coordinator.say("b", Released("ann", 2, {7: 12}))
    assert coordinator.store.read().held["ann"] == {7: held(7, 12)}


@pytest.mark.parametrize("word", [Progress({"ann": {7: 12}}), Released("ann", 1, {7: 12})])
def test_a_brokers_word_of_somebody_elses_subscriber_counts_for_nothing(
    coordinator: ManualCoordinator, word: Progress | Released
) -> None:
    assert coordinator.messages(coordinator.say("b", word)) == []
    assert coordinator.store.read().held["ann"] == {7: held(7)}
    coordinator.say("a", Progress({"ann": {7: 3}}))
    assert coordinator.store.read().held["ann"] == {7: held(7, 3)}


def test_a_subscription_is_kept_once_it_is_stored(coordinator: ManualCoordinator) -> None:
    link = coordinator.links["a"]
    (store,) = coordinator.core.handle(coordinator.now, Received(link, Keep(3, "ann", 1, held(8))))
    assert isinstance(store, StoreBatch)
    assert coordinator.core.handle(coordinator.now, BatchStored(store.batch)) == [Send(link, Kept(3))]


def test_the_same_subscription_may_be_kept_again(coordinator: ManualCoordinator) -> None:
    coordinator.say("a", Progress({"ann": {7: 40}}))
    assert coordinator.messages(coordinator.say("a", Keep(4, "ann", 1, held(7, 3)))) == [Kept(4)]
    assert coordinator.store.read().held["ann"] == {7: held(7, 40)}


def test_what_is_asked_for_at_the_destination_before_it_knows_of_it_goes_on_from_where_it_was(
    coordinator: ManualCoordinator,
) -> None:
    told(coordinator)
    coordinator.say("a", Keep(3, "ann", 1, held(8, 5)))
    coordinator.say("b", Arrived("ann", 2))
    assert coordinator.messages(coordinator.say("b", Keep(4, "ann", 2, held(8, 9)))) == [Kept(4)]
    assert coordinator.store.read().held["ann"][8] == held(8, 5)


def test_what_is_asked_for_or_given_up_is_so_under_all_its_numbers(coordinator: ManualCoordinator) -> None:
    coordinator.say("a", Keep(3, "ann", 1, held(9, 5), was=(7,)))
    assert coordinator.store.read().held["ann"] == {9: held(9, 5)}
    coordinator.say("a", Keep(4, "ann", 1, held(10), gone=True, was=(9, 99)))
    assert "ann" not in coordinator.store.read().held


def test_what_another_broker_had_stored_under_its_new_number_is_still_the_same_subscription(
    coordinator: ManualCoordinator,
) -> None:
    renumbered = replace(held(7), subscription=17)
    drained(coordinator)
    coordinator.say("b", Keep(-1, "ann", 2, renumbered, unasked=True, was=(7,)))
    assert coordinator.store.read().held["ann"] == {17: renumbered}
    coordinator.say("a", Keep(3, "ann", 1, held(7), gone=True))
    assert "ann" not in coordinator.store.read().held
    for number, keep in ((7, held(7)), (17, renumbered)):
        coordinator.say("a", Keep(4, "ann", 1, keep))
        assert list(coordinator.store.read().held["ann"]) == [number]


def test_a_subscription_made_during_a_move_is_kept_when_the_destination_has_it(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    said = coordinator.say("a", Keep(3, "ann", 1, held(8)))
    assert coordinator.messages(said) == [Prepare("ann", 2, [held(7), held(8)])]
    assert Kept(3) in coordinator.messages(coordinator.say("b", Prepared("ann", 2)))


def test_a_destination_is_never_asked_twice_at_a_time(coordinator: ManualCoordinator) -> None:
    drained(coordinator)
    assert coordinator.messages(coordinator.say("a", Keep(3, "ann", 1, held(7), gone=True))) == []
    assert coordinator.messages(coordinator.say("b", Prepared("ann", 2))) == [Prepare("ann", 2, [])]
    assert coordinator.messages(coordinator.say("b", Prepared("ann", 2))) == [Kept(3), Handover("ann", 1, "ws://b")]


def test_a_subscription_made_during_a_move_that_fails_is_kept(coordinator: ManualCoordinator) -> None:
    drained(coordinator)
    coordinator.say("a", Keep(3, "ann", 1, held(8)))
    assert Kept(3) in coordinator.messages(coordinator.say("b", Unprepared("ann", 2, "full")))


def test_whoever_arrives_early_gets_what_the_destination_does_not_know_yet(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.say("a", Keep(3, "ann", 1, held(8)))
    said = coordinator.messages(coordinator.say("b", Arrived("ann", 2)))
    assert said == [Prepare("ann", 2, [held(7), held(8)]), Kept(3), Release("ann", 1)]
    coordinator.handle(Lost(coordinator.links["b"]))
    assert Prepare("ann", 2, [held(7), held(8)]) in coordinator.messages(
        coordinator.hello("b", serving=[StayId("ann", 2)])
    )


def test_whoever_subscribes_at_the_destination_has_arrived(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    said = coordinator.messages(coordinator.say("b", Keep(3, "ann", 2, held(8))))
    assert said == [Release("ann", 1), Kept(3)]


def test_a_subscription_of_an_old_stay_is_refused(coordinator: ManualCoordinator) -> None:
    told(coordinator)
    coordinator.say("b", Arrived("ann", 2))
    refused, release = coordinator.messages(coordinator.say("a", Keep(3, "ann", 1, held(8))))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.details) == ("elsewhere", {"ref": 3})
    assert release == Release("ann", 1)
    assert 8 not in coordinator.store.read().held["ann"]


def test_a_request_during_a_move_is_answered_with_the_broker_that_is_ready(coordinator: ManualCoordinator) -> None:
    drained(coordinator)
    asked = coordinator.request("ann")
    assert not [action for action in asked if not isinstance(action, Send)]
    assert coordinator.answer(coordinator.say("b", Prepared("ann", 2))) == Located("b", "ws://b")
    assert coordinator.answer(coordinator.request("ann")) == Located("b", "ws://b")


def test_a_newcomer_that_nobody_can_take_is_told_so() -> None:
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.request("bob")
    assert isinstance(coordinator.answer(coordinator.say("a", Unprepared("bob", 1, "full"))), UnavailableError)
    assert coordinator.assignment("bob").broker is None


def test_a_move_that_is_over_wakes_nobody() -> None:
    patient = CoordinatorLimits(interval=1000.0, silence=1000.0, presence=1000.0)
    coordinator = ManualCoordinator(limits=patient)
    coordinator.hello("a")
    coordinator.request("bob")
    assert coordinator.core.wake() == coordinator.now + patient.preparing
    coordinator.say("a", Prepared("bob", 1))
    assert coordinator.core.wake() > coordinator.now + patient.preparing

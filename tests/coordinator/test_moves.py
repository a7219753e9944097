"""A move is make before break: nobody is let go before they are somewhere else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.coordinator.desk import Desk, held
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
def desk() -> Desk:
    """Ann is on "a" with subscription 7; "b" is there too."""
    desk = Desk()
    desk.hello("a")
    assert desk.settle("ann", 7) == Assignment("ann", "a", 1, None, 1)
    desk.hello("b")
    for broker in "ab":
        desk.say(broker, Load(0.0, 0.0, {7: 100.0}))
    return desk


def drained(desk: Desk) -> list[Action]:
    """Makes the coordinator move ann from "a" to "b"."""
    return desk.handle(Drain(0, "a")) + desk.wait(0.1)


def told(desk: Desk) -> list[Action]:
    """The same, until ann is told."""
    drained(desk)
    return desk.say("b", Prepared("ann", 2))


def test_the_destination_is_prepared_with_subscriptions_and_cursors(desk: Desk) -> None:
    desk.say("a", Progress({"ann": {7: 40}}))
    assert desk.sent(drained(desk), Prepare) == [("b", Prepare("ann", 2, [held(7, 40)]))]


def test_the_source_tells_the_subscriber_once_the_destination_is_prepared(desk: Desk) -> None:
    assert not desk.sent(drained(desk), Handover)
    assert desk.messages(desk.say("b", Prepared("ann", 2))) == [Handover("ann", 1, "ws://b")]
    assert desk.place("ann").broker == "a"


def test_the_source_is_released_when_the_subscriber_has_arrived(desk: Desk) -> None:
    told(desk)
    assert desk.sent(desk.say("b", Arrived("ann", 2)), Release) == [("a", Release("ann", 1))]
    assert desk.place("ann") == Assignment("ann", "b", 2, None, 2)


def test_the_new_place_is_stored_before_the_source_is_released(desk: Desk) -> None:
    told(desk)
    link = desk.links["b"]
    (store,) = desk.core.handle(desk.now, Received(link, Arrived("ann", 2)))
    assert isinstance(store, StoreBatch)
    assert Send(desk.links["a"], Release("ann", 1)) in desk.core.handle(desk.now, BatchStored(store.batch))


def test_the_number_of_a_stay_is_stored_before_anybody_hears_it(desk: Desk) -> None:
    token = desk.token("bob")
    (store,) = desk.core.handle(desk.now, RequestBroker(7, token))
    assert isinstance(store, StoreBatch)
    (send,) = desk.core.handle(desk.now, BatchStored(store.batch))
    assert isinstance(send, Send)
    assert isinstance(send.message, Prepare)


def test_an_absent_subscriber_is_moved_without_being_told(desk: Desk) -> None:
    told(desk)
    assert desk.sent(desk.say("a", Absent("ann", 1)), Release) == [("a", Release("ann", 1))]
    assert desk.place("ann").broker == "b"


def test_a_subscriber_that_never_comes_stays_where_it_was(desk: Desk) -> None:
    told(desk)
    desk.handle(Drain(0, "a", on=False))
    assert desk.sent(desk.wait(desk.limits.arriving), Release) == [("b", Release("ann", 2))]
    assert desk.place("ann") == Assignment("ann", "a", 1, None, 2)


def test_a_destination_that_never_answers_is_given_up(desk: Desk) -> None:
    drained(desk)
    desk.handle(Drain(0, "a", on=False))
    assert desk.sent(desk.wait(desk.limits.preparing), Release) == [("b", Release("ann", 2))]


def test_a_destination_that_cannot_is_not_waited_for(desk: Desk) -> None:
    drained(desk)
    desk.say("b", Unprepared("ann", 2, "full"))
    assert desk.place("ann") == Assignment("ann", "a", 1, None, 2)


def test_the_next_try_has_a_number_of_its_own(desk: Desk) -> None:
    drained(desk)
    desk.say("b", Unprepared("ann", 2, "full"))
    assert desk.sole(desk.wait(desk.limits.interval), Prepare)[1].stay == 3


def test_whoever_comes_too_late_is_sent_away(desk: Desk) -> None:
    told(desk)
    desk.handle(Drain(0, "a", on=False))
    desk.wait(desk.limits.arriving)
    assert desk.messages(desk.say("b", Arrived("ann", 2))) == [Release("ann", 2)]
    assert desk.place("ann").broker == "a"


def test_messages_may_be_said_twice(desk: Desk) -> None:
    told(desk)
    assert desk.messages(desk.say("b", Prepared("ann", 2))) == []
    desk.say("b", Arrived("ann", 2))
    assert desk.messages(desk.say("b", Arrived("ann", 2))) == []
    assert desk.messages(desk.say("a", Absent("ann", 1))) == [Release("ann", 1)]
    assert desk.place("ann") == Assignment("ann", "b", 2, None, 2)


def test_a_source_that_dies_need_not_tell_anybody(desk: Desk) -> None:
    told(desk)
    desk.handle(Lost(desk.links.pop("a")))
    desk.wait(desk.limits.grace)
    assert desk.place("ann") == Assignment("ann", "b", 2, None, 2)


def test_a_destination_that_dies_is_given_up(desk: Desk) -> None:
    told(desk)
    desk.handle(Lost(desk.links.pop("b")))
    desk.wait(desk.limits.grace)
    assert desk.place("ann") == Assignment("ann", "a", 1, None, 2)


def test_a_destination_that_returns_is_asked_again(desk: Desk) -> None:
    drained(desk)
    desk.handle(Lost(desk.links["b"]))
    assert desk.sole(desk.hello("b"), Prepare) == ("b", Prepare("ann", 2, [held(7)]))


def test_a_destination_that_returns_with_the_subscriber_has_it(desk: Desk) -> None:
    told(desk)
    desk.handle(Lost(desk.links["b"]))
    desk.hello("b", serving=[StayId("ann", 2)])
    assert desk.place("ann").broker == "b"


def test_a_source_that_returns_tells_again(desk: Desk) -> None:
    told(desk)
    desk.handle(Lost(desk.links["a"]))
    assert desk.sole(desk.hello("a", serving=[StayId("ann", 1)]), Handover)[1].stay == 1


def test_cursors_of_the_source_count_when_it_lets_go(desk: Desk) -> None:
    told(desk)
    desk.say("b", Arrived("ann", 2))
    desk.say("a", Released("ann", 1, {7: 12, 99: 3}))
    assert desk.store.read().held["ann"] == {7: held(7, 12)}


def test_a_broker_that_comes_back_from_the_dead_says_how_far_those_are_who_have_left_it(desk: Desk) -> None:
    desk.muted.add("a")
    desk.wait(5)
    desk.say("b", Prepared("ann", 2))
    assert desk.place("ann").broker == "b"
    desk.hello("a", serving=[StayId("ann", 1)])
    desk.say("a", Released("ann", 1, {7: 12}))
    assert desk.store.read().held["ann"] == {7: held(7, 12)}


def test_a_destination_where_the_subscriber_came_too_late_says_how_far_it_is(desk: Desk) -> None:
    told(desk)
    desk.wait(30)
    assert desk.place("ann").broker == "a"
    desk.say("b", Released("ann", 2, {7: 12}))
    assert desk.store.read().held["ann"] == {7: held(7, 12)}


@pytest.mark.parametrize("word", [Progress({"ann": {7: 12}}), Released("ann", 1, {7: 12})])
def test_a_brokers_word_of_somebody_elses_subscriber_counts_for_nothing(desk: Desk, word: Progress | Released) -> None:
    assert desk.messages(desk.say("b", word)) == []
    assert desk.store.read().held["ann"] == {7: held(7)}
    desk.say("a", Progress({"ann": {7: 3}}))
    assert desk.store.read().held["ann"] == {7: held(7, 3)}


def test_a_subscription_is_kept_once_it_is_stored(desk: Desk) -> None:
    link = desk.links["a"]
    (store,) = desk.core.handle(desk.now, Received(link, Keep(3, "ann", 1, held(8))))
    assert isinstance(store, StoreBatch)
    assert desk.core.handle(desk.now, BatchStored(store.batch)) == [Send(link, Kept(3))]


def test_the_same_subscription_may_be_kept_again(desk: Desk) -> None:
    desk.say("a", Progress({"ann": {7: 40}}))
    assert desk.messages(desk.say("a", Keep(4, "ann", 1, held(7, 3)))) == [Kept(4)]
    assert desk.store.read().held["ann"] == {7: held(7, 40)}


def test_what_is_asked_for_at_the_destination_before_it_knows_of_it_goes_on_from_where_it_was(desk: Desk) -> None:
    told(desk)
    desk.say("a", Keep(3, "ann", 1, held(8, 5)))
    desk.say("b", Arrived("ann", 2))
    assert desk.messages(desk.say("b", Keep(4, "ann", 2, held(8, 9)))) == [Kept(4)]
    assert desk.store.read().held["ann"][8] == held(8, 5)


def test_what_is_asked_for_or_given_up_is_so_under_all_its_numbers(desk: Desk) -> None:
    desk.say("a", Keep(3, "ann", 1, held(9, 5), was=(7,)))
    assert desk.store.read().held["ann"] == {9: held(9, 5)}
    desk.say("a", Keep(4, "ann", 1, held(10), gone=True, was=(9, 99)))
    assert "ann" not in desk.store.read().held


def test_what_another_broker_had_stored_under_its_new_number_is_still_the_same_subscription(desk: Desk) -> None:
    renumbered = replace(held(7), subscription=17)
    drained(desk)
    desk.say("b", Keep(-1, "ann", 2, renumbered, unasked=True, was=(7,)))
    assert desk.store.read().held["ann"] == {17: renumbered}
    desk.say("a", Keep(3, "ann", 1, held(7), gone=True))
    assert "ann" not in desk.store.read().held
    for number, keep in ((7, held(7)), (17, renumbered)):
        desk.say("a", Keep(4, "ann", 1, keep))
        assert list(desk.store.read().held["ann"]) == [number]


def test_a_subscription_made_during_a_move_is_kept_when_the_destination_has_it(desk: Desk) -> None:
    told(desk)
    said = desk.say("a", Keep(3, "ann", 1, held(8)))
    assert desk.messages(said) == [Prepare("ann", 2, [held(7), held(8)])]
    assert Kept(3) in desk.messages(desk.say("b", Prepared("ann", 2)))


def test_a_destination_is_never_asked_twice_at_a_time(desk: Desk) -> None:
    drained(desk)
    assert desk.messages(desk.say("a", Keep(3, "ann", 1, held(7), gone=True))) == []
    assert desk.messages(desk.say("b", Prepared("ann", 2))) == [Prepare("ann", 2, [])]
    assert desk.messages(desk.say("b", Prepared("ann", 2))) == [Kept(3), Handover("ann", 1, "ws://b")]


def test_a_subscription_made_during_a_move_that_fails_is_kept(desk: Desk) -> None:
    drained(desk)
    desk.say("a", Keep(3, "ann", 1, held(8)))
    assert Kept(3) in desk.messages(desk.say("b", Unprepared("ann", 2, "full")))


def test_whoever_arrives_early_gets_what_the_destination_does_not_know_yet(desk: Desk) -> None:
    told(desk)
    desk.say("a", Keep(3, "ann", 1, held(8)))
    said = desk.messages(desk.say("b", Arrived("ann", 2)))
    assert said == [Prepare("ann", 2, [held(7), held(8)]), Kept(3), Release("ann", 1)]
    desk.handle(Lost(desk.links["b"]))
    assert Prepare("ann", 2, [held(7), held(8)]) in desk.messages(desk.hello("b", serving=[StayId("ann", 2)]))


def test_whoever_subscribes_at_the_destination_has_arrived(desk: Desk) -> None:
    told(desk)
    said = desk.messages(desk.say("b", Keep(3, "ann", 2, held(8))))
    assert said == [Release("ann", 1), Kept(3)]


def test_a_subscription_of_an_old_stay_is_refused(desk: Desk) -> None:
    told(desk)
    desk.say("b", Arrived("ann", 2))
    refused, release = desk.messages(desk.say("a", Keep(3, "ann", 1, held(8))))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.details) == ("elsewhere", {"ref": 3})
    assert release == Release("ann", 1)
    assert 8 not in desk.store.read().held["ann"]


def test_a_request_during_a_move_is_answered_with_the_broker_that_is_ready(desk: Desk) -> None:
    drained(desk)
    asked = desk.request("ann")
    assert not [action for action in asked if not isinstance(action, Send)]
    assert desk.answer(desk.say("b", Prepared("ann", 2))) == Located("b", "ws://b")
    assert desk.answer(desk.request("ann")) == Located("b", "ws://b")


def test_a_newcomer_that_nobody_can_take_is_told_so() -> None:
    desk = Desk()
    desk.hello("a")
    desk.request("bob")
    assert isinstance(desk.answer(desk.say("a", Unprepared("bob", 1, "full"))), UnavailableError)
    assert desk.place("bob").broker is None


def test_a_move_that_is_over_wakes_nobody() -> None:
    patient = CoordinatorLimits(interval=1000.0, silence=1000.0, presence=1000.0)
    desk = Desk(limits=patient)
    desk.hello("a")
    desk.request("bob")
    assert desk.core.wake() == desk.now + patient.preparing
    desk.say("a", Prepared("bob", 1))
    assert desk.core.wake() > desk.now + patient.preparing

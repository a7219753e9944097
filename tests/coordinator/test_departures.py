"""Who leaves for good is nowhere: not in the store, not in the loads, not on a broker, whatever was going on."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.coordinator.desk import Desk, held
from tocsin.coordinator.actions import Close, Reply
from tocsin.coordinator.answers import Done, Located, Registered
from tocsin.coordinator.events import (
    Amended,
    Drain,
    Lost,
    RegisterUser,
    RemoveBroker,
    RemoveUser,
    RequestBroker,
    Unregister,
)
from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.tokens import claims
from tocsin.errors import ConflictError, ForbiddenError, NotFoundError, UnauthorizedError
from tocsin.model.coordination import (
    Arrived,
    Hello,
    Keep,
    Load,
    Prepare,
    Prepared,
    Presence,
    Progress,
    Release,
    Released,
    StayId,
    Unprepared,
)

DAY = 86_400.0


@pytest.fixture
def desk() -> Desk:
    """Ann on "a", with two subscriptions, and "b" without anybody."""
    desk = Desk()
    desk.hello("a")
    desk.hello("b")
    desk.settle("ann", 1, 2)
    return desk


def signed(desk: Desk, name: str, registration: int = 0) -> str:
    """A token that was made beside the coordinator, or before an older copy of its store was put in place."""
    return desk.store.keyring().sign(replace(claims(name, "subscriber", desk.now + DAY), registration=registration))


def nowhere(desk: Desk, name: str) -> bool:
    """Whether nothing is left of somebody but that it was removed."""
    parts, state = desk.core._parts, desk.store.read()
    stored = [place for place in state.assignments if place.subscriber == name]
    return (
        all(place.gone and not place.broker and not place.destination for place in stored)
        and name not in state.held
        and name not in parts.assignments
        and name not in parts.workload._subscribers
        and parts.moves.get(name) is None
        and not any(name in member.online for member in parts.registry)
    )


def test_a_subscriber_that_unregisters_is_nowhere(desk: Desk) -> None:
    token = desk.token("ann")
    desk.say("a", Presence(["ann"]))
    actions = desk.handle(Unregister(0, token))
    assert desk.answer(actions) == Done()
    assert desk.sole(actions, Release) == ("a", Release("ann", 1))
    assert nowhere(desk, "ann")
    assert desk.core._parts.workload.live.subscriptions.tolist() == []


def test_unregistering_again_is_done_too(desk: Desk) -> None:
    token = desk.token("ann")
    for _ in range(2):
        assert desk.answer(desk.handle(Unregister(0, token))) == Done()


def test_only_subscribers_unregister(desk: Desk) -> None:
    token = desk.store.keyring().sign(claims("a", "broker", desk.now + 9))
    assert isinstance(desk.answer(desk.handle(Unregister(0, token))), ForbiddenError)
    assert isinstance(desk.answer(desk.handle(Unregister(0, "nonsense"))), UnauthorizedError)


def test_an_operator_removes_somebody_once(desk: Desk) -> None:
    assert desk.answer(desk.handle(RemoveUser(0, "ann"))) == Done()
    assert isinstance(desk.answer(desk.handle(RemoveUser(0, "ann"))), NotFoundError)
    assert nowhere(desk, "ann")


def test_the_old_token_is_good_for_nothing(desk: Desk) -> None:
    token = desk.token("ann")
    desk.handle(Unregister(0, token))
    assert isinstance(desk.answer(desk.handle(RequestBroker(0, token))), UnauthorizedError)
    desk.restart()
    assert isinstance(desk.answer(desk.handle(RequestBroker(0, token))), UnauthorizedError)


def test_whoever_leaves_before_it_ever_came_is_not_let_in_afterwards(desk: Desk) -> None:
    token = signed(desk, "bob")
    assert desk.answer(desk.handle(Unregister(0, token))) == Done()
    for _ in range(2):
        assert isinstance(desk.answer(desk.handle(RequestBroker(0, token))), UnauthorizedError)
        assert nowhere(desk, "bob")
        desk.restart()


def test_whoever_leaves_before_its_name_is_read_from_the_store_does_not_come_back(desk: Desk) -> None:
    desk.store.amend(lambda keyring: keyring, "bob")
    names = tuple(desk.store.unplaced_subscribers())
    desk.handle(Unregister(0, signed(desk, "bob")))
    desk.handle(Amended(desk.store.keyring(), names))
    assert nowhere(desk, "bob")


@pytest.mark.parametrize("known", [True, False], ids=["who is known", "who was removed"])
def test_whoever_leaves_with_a_token_newer_than_a_restored_store_is_not_let_in_afterwards(
    desk: Desk, known: bool
) -> None:
    if not known:
        desk.handle(RemoveUser(0, "ann"))
    token = signed(desk, "ann", 3)
    assert desk.answer(desk.handle(Unregister(0, token))) == Done()
    assert isinstance(desk.answer(desk.handle(RequestBroker(0, token))), UnauthorizedError)
    assert nowhere(desk, "ann")
    desk.token("ann")
    assert desk.place("ann").registration == 4


def test_whoever_is_removed_anew_keeps_nobody_else_from_being_forgotten(desk: Desk) -> None:
    desk.settle("bob")
    desk.handle(RemoveUser(0, "ann"))
    desk.handle(RemoveUser(0, "bob"))
    desk.now += DAY
    desk.handle(Unregister(0, signed(desk, "ann", 1)))
    assert desk.core._parts.assignments.forgotten_at() == desk.record("bob").gone < desk.record("ann").gone


def test_the_name_may_be_had_by_another_who_gets_nothing_of_the_first(desk: Desk) -> None:
    old = desk.token("ann")
    desk.handle(Unregister(0, old))
    answer = desk.answer(desk.handle(RegisterUser(0, "ann", fresh=True)))
    assert isinstance(answer, Registered)
    actions = desk.handle(RequestBroker(7, answer.token))
    (prepare,) = [message for _, message in desk.sent(actions, Prepare)]
    assert prepare == Prepare("ann", 2, [], registration=1), "no subscription, and no number given before"
    assert isinstance(desk.answer(desk.handle(RequestBroker(0, old))), UnauthorizedError)
    assert desk.answer(desk.handle(Unregister(0, old))) == Done()
    assert "ann" in desk.core._parts.assignments, "the one who has left cannot take the other along"


def test_a_broker_that_comes_back_with_a_stay_of_before_is_told_to_release_it(desk: Desk) -> None:
    desk.handle(Lost(desk.links.pop("a")))
    assert desk.sent(desk.handle(RemoveUser(0, "ann")), Release) == []
    assert desk.sole(desk.hello("a", serving=[StayId("ann", 1)]), Release) == ("a", Release("ann", 1))
    assert nowhere(desk, "ann")
    desk.token("ann")
    desk.handle(Lost(desk.links.pop("a")))
    assert desk.sole(desk.hello("a", serving=[StayId("ann", 1)]), Release) == ("a", Release("ann", 1))
    assert desk.place("ann").broker is None


def test_a_stay_that_is_newer_than_the_removal_is_not_believed(desk: Desk) -> None:
    desk.handle(RemoveUser(0, "ann"))
    desk.handle(Lost(desk.links.pop("a")))
    assert desk.sole(desk.hello("a", serving=[StayId("ann", 9)]), Release) == ("a", Release("ann", 9))
    assert nowhere(desk, "ann")
    assert desk.record("ann").coming == 9


def test_whoever_leaves_while_it_is_moved_is_released_by_both(desk: Desk) -> None:
    token = desk.token("ann")
    desk.handle(Drain(0, "a"))
    for broker in "ab":
        desk.say(broker, Load(0.0, 0.0))
    assert desk.sole(desk.wait(6), Prepare)[0] == "b"
    waiting = desk.handle(RequestBroker(9, token))
    assert desk.messages(waiting) == []
    actions = desk.handle(Unregister(0, token))
    assert sorted(desk.sent(actions, Release), key=lambda each: each[0]) == [
        ("a", Release("ann", 1)),
        ("b", Release("ann", 2)),
    ]
    answers = {action.handle: action.answer for action in actions if isinstance(action, Reply)}
    assert answers[0] == Done()
    assert isinstance(answers[9], UnauthorizedError)
    assert nowhere(desk, "ann")
    assert desk.sent(desk.say("b", Prepared("ann", 2)), Release) == [("b", Release("ann", 2))]
    assert desk.sent(desk.say("b", Arrived("ann", 2)), Release) == [("b", Release("ann", 2))]
    desk.wait(60)
    assert nowhere(desk, "ann")


def test_whoever_leaves_while_its_broker_is_dead_is_not_placed_again() -> None:
    desk = Desk()
    desk.hello("a")
    desk.settle("ann", 1)
    desk.handle(Lost(desk.links.pop("a")))
    desk.wait(5)
    assert desk.answer(desk.handle(RemoveUser(0, "ann"))) == Done()
    assert desk.sent(desk.hello("b"), Prepare) == []
    assert nowhere(desk, "ann")


def test_what_its_broker_still_says_of_it_changes_nothing(desk: Desk) -> None:
    desk.handle(RemoveUser(0, "ann"))
    desk.say("a", Keep(4, "ann", 1, held(3)))
    desk.say("a", Presence(["ann"]))
    desk.say("a", Progress({"ann": {1: 50}}))
    desk.say("a", Released("ann", 1, {1: 50}))
    assert nowhere(desk, "ann")


def test_what_the_first_had_read_is_not_counted_to_the_second(desk: Desk) -> None:
    desk.handle(Lost(desk.links.pop("a")))
    desk.handle(RemoveUser(0, "ann"))
    stay = desk.settle("ann", 1)
    assert stay.broker == "b"
    desk.hello("a", serving=[StayId("ann", 1)])
    desk.say("a", Progress({"ann": {1: 50}}))
    desk.say("a", Released("ann", 1, {1: 50}))
    assert [each.cursor for each in desk.store.read().held["ann"].values()] == [0]
    desk.say("b", Progress({"ann": {1: 7}}))
    assert [each.cursor for each in desk.store.read().held["ann"].values()] == [7]


def test_a_crash_before_it_is_stored_leaves_everything_and_after_it_nothing(desk: Desk) -> None:
    token = desk.token("ann")
    actions = desk.core.handle(desk.now, Unregister(0, token))
    assert len(actions) == 1, "nothing is said before it is stored"
    desk.restart()
    assert "ann" in desk.core._parts.assignments
    desk.hello("a", serving=[StayId("ann", 1)])
    (store,) = desk.core.handle(desk.now, Unregister(0, token))
    desk.store.write(store.changes)  # type: ignore[union-attr]
    desk.restart()
    assert nowhere(desk, "ann")
    assert desk.sole(desk.hello("a", serving=[StayId("ann", 1)]), Release) == ("a", Release("ann", 1))


def test_a_name_that_is_read_from_the_store_late_does_not_come_back(desk: Desk) -> None:
    desk.store.amend(lambda keyring: keyring, "bob")
    names = tuple(desk.store.unplaced_subscribers())
    desk.handle(Amended(desk.store.keyring(), names))
    desk.handle(RemoveUser(0, "bob"))
    desk.handle(Amended(desk.store.keyring(), names))
    assert nowhere(desk, "bob")
    desk.store.amend(lambda keyring: keyring, "bob")
    desk.handle(Amended(desk.store.keyring(), tuple(desk.store.unplaced_subscribers())))
    assert desk.place("bob").registration == 1


def test_a_token_that_is_newer_than_a_restored_store_is_that_of_another(desk: Desk) -> None:
    actions = desk.handle(RequestBroker(0, signed(desk, "ann", 3)))
    assert ("a", Release("ann", 1)) in desk.sent(actions, Release)
    assert desk.sent(actions, Prepare)[0][1] == Prepare("ann", 2, [], registration=3)


def test_that_somebody_was_removed_is_forgotten_when_no_token_can_be_left() -> None:
    desk = Desk(limits=CoordinatorLimits(silence=DAY, interval=DAY, token_life=20 * DAY))
    desk.hello("a")
    desk.settle("ann", 1)
    desk.store.amend(lambda keyring: keyring.lasting(desk.now + 40 * DAY))
    desk.handle(Amended(desk.store.keyring()))
    desk.handle(RemoveUser(0, "ann"))
    desk.wait(39 * DAY)
    assert desk.record("ann").gone
    desk.wait(2 * DAY)
    assert desk.store.read().assignments == []


def test_a_broker_that_serves_is_not_removed(desk: Desk) -> None:
    for broker, says in (("a", "is serving"), ("b", "is serving")):
        answer = desk.answer(desk.handle(RemoveBroker(0, broker)))
        assert isinstance(answer, ConflictError)
        assert f"tocsin balance drain {broker} --wait" in str(answer)
        assert says in str(answer) or "joining" in str(answer)
    desk.handle(Drain(0, "a"))
    assert "1 subscribers are still there" in str(desk.answer(desk.handle(RemoveBroker(0, "a"))))
    assert isinstance(desk.answer(desk.handle(RemoveBroker(0, "x"))), NotFoundError)


def test_a_dead_broker_is_removed_once_its_subscribers_have_another(desk: Desk) -> None:
    desk.handle(Lost(desk.links.pop("a")))
    assert "it is away" in str(desk.answer(desk.handle(RemoveBroker(0, "a"))))
    desk.wait(4)
    assert "have no other broker yet" in str(desk.answer(desk.handle(RemoveBroker(0, "a"))))
    desk.say("b", Prepared("ann", 2))
    assert desk.answer(desk.handle(RemoveBroker(0, "a"))) == Done()
    assert [broker.name for broker in desk.store.read().brokers] == ["b"]
    desk.restart()
    assert [member.name for member in desk.core._parts.registry] == ["b"]


def test_a_drained_broker_that_runs_is_cut_off_once_its_token_is_not_taken(desk: Desk) -> None:
    desk.handle(Drain(0, "b"))
    link = desk.links["b"]
    assert not [action for action in desk.handle(RemoveBroker(0, "b")) if isinstance(action, Close)]
    assert desk.say("b", Load(1.0, 1.0)) == [], "what it says counts for nothing"
    assert desk.say("b", Hello("b", "ws://b")) == []
    keyring = desk.store.keyring()
    assert keyring.series == {"b": 1}
    assert Close(link) in desk.handle(Amended(keyring))
    desk.handle(Lost(desk.links.pop("b")))
    assert not desk.core._parts.registry.dismissed


def test_a_removed_broker_that_comes_again_is_a_new_one(desk: Desk) -> None:
    desk.handle(Drain(0, "b"))
    desk.handle(RemoveBroker(0, "b"))
    desk.handle(Lost(desk.links.pop("b")))
    desk.hello("b")
    member = desk.core._parts.registry.member("b")
    assert (member.state, member.record.draining) == ("joining", False)
    desk.wait(10)
    assert desk.core._parts.workload.number("b") is not None, "its forerunner's death is not its own"


def test_a_removed_broker_that_was_dead_comes_again_and_takes_part(desk: Desk) -> None:
    desk.handle(Lost(desk.links.pop("b")))
    desk.wait(5)
    desk.handle(RemoveBroker(0, "b"))
    desk.hello("b")
    desk.wait(10)
    assert desk.core._parts.workload.number("b") is not None


def test_whoever_asks_after_its_removal_can_register_and_be_placed(desk: Desk) -> None:
    desk.handle(RemoveUser(0, "ann"))
    broker, prepare = desk.sole(desk.request("ann"), Prepare)
    assert desk.answer(desk.say(broker, Prepared("ann", prepare.stay))) == Located(broker, f"ws://{broker}")


@pytest.mark.parametrize("removed", [False, True])
def test_a_broker_that_could_not_prepare_is_asked_again_unless_its_subscriber_has_left(
    desk: Desk, removed: bool
) -> None:
    place = desk.place("ann")
    desk.say("a", Unprepared("ann", place.stay, "the data cluster is away"))
    if removed:
        desk.handle(RemoveUser(0, "ann"))
    asked = desk.sent(desk.wait(desk.limits.retry + 1), Prepare)
    assert [(broker, each.subscriber, each.stay) for broker, each in asked] == (
        [] if removed else [("a", "ann", place.stay)]
    )

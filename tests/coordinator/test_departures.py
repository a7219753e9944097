"""Who leaves for good is nowhere: not in the store, not in the loads, not on a broker, whatever was going on."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.coordinator.manual import ManualCoordinator, held
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
def coordinator() -> ManualCoordinator:
    """Ann on "a", with two subscriptions, and "b" without anybody."""
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.hello("b")
    coordinator.settle("ann", 1, 2)
    return coordinator


def signed(coordinator: ManualCoordinator, name: str, registration: int = 0) -> str:
    """A token that was made beside the coordinator, or before an older copy of its store was put in place."""
    return coordinator.store.keyring().sign(
        replace(claims(name, "subscriber", coordinator.now + DAY), registration=registration)
    )


def nowhere(coordinator: ManualCoordinator, name: str) -> bool:
    """Whether nothing is left of somebody but that it was removed."""
    parts, state = coordinator.core._parts, coordinator.store.read()
    stored = [each for each in state.assignments if each.subscriber == name]
    return (
        all(each.gone and not each.broker and not each.destination for each in stored)
        and name not in state.held
        and name not in parts.assignments
        and name not in parts.workload._subscribers
        and parts.moves.get(name) is None
        and not any(name in member.online for member in parts.registry)
    )


def test_a_subscriber_that_unregisters_is_nowhere(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("ann")
    coordinator.say("a", Presence(["ann"]))
    actions = coordinator.handle(Unregister(0, token))
    assert coordinator.answer(actions) == Done()
    assert coordinator.sole(actions, Release) == ("a", Release("ann", 1))
    assert nowhere(coordinator, "ann")
    assert coordinator.core._parts.workload.live.subscriptions.tolist() == []


def test_unregistering_again_is_done_too(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("ann")
    for _ in range(2):
        assert coordinator.answer(coordinator.handle(Unregister(0, token))) == Done()


def test_only_subscribers_unregister(coordinator: ManualCoordinator) -> None:
    token = coordinator.store.keyring().sign(claims("a", "broker", coordinator.now + 9))
    assert isinstance(coordinator.answer(coordinator.handle(Unregister(0, token))), ForbiddenError)
    assert isinstance(coordinator.answer(coordinator.handle(Unregister(0, "nonsense"))), UnauthorizedError)


def test_an_operator_removes_somebody_once(coordinator: ManualCoordinator) -> None:
    assert coordinator.answer(coordinator.handle(RemoveUser(0, "ann"))) == Done()
    assert isinstance(coordinator.answer(coordinator.handle(RemoveUser(0, "ann"))), NotFoundError)
    assert nowhere(coordinator, "ann")


def test_the_old_token_is_good_for_nothing(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("ann")
    coordinator.handle(Unregister(0, token))
    assert isinstance(coordinator.answer(coordinator.handle(RequestBroker(0, token))), UnauthorizedError)
    coordinator.restart()
    assert isinstance(coordinator.answer(coordinator.handle(RequestBroker(0, token))), UnauthorizedError)


def test_whoever_leaves_before_it_ever_came_is_not_let_in_afterwards(coordinator: ManualCoordinator) -> None:
    token = signed(coordinator, "bob")
    assert coordinator.answer(coordinator.handle(Unregister(0, token))) == Done()
    for _ in range(2):
        assert isinstance(coordinator.answer(coordinator.handle(RequestBroker(0, token))), UnauthorizedError)
        assert nowhere(coordinator, "bob")
        coordinator.restart()


def test_whoever_leaves_before_its_name_is_read_from_the_store_does_not_come_back(
    coordinator: ManualCoordinator,
) -> None:
    coordinator.store.amend(lambda keyring: keyring, "bob")
    names = tuple(coordinator.store.unplaced_subscribers())
    coordinator.handle(Unregister(0, signed(coordinator, "bob")))
    coordinator.handle(Amended(coordinator.store.keyring(), names))
    assert nowhere(coordinator, "bob")


@pytest.mark.parametrize("known", [True, False], ids=["who is known", "who was removed"])
def test_whoever_leaves_with_a_token_newer_than_a_restored_store_is_not_let_in_afterwards(
    coordinator: ManualCoordinator, known: bool
) -> None:
    if not known:
        coordinator.handle(RemoveUser(0, "ann"))
    token = signed(coordinator, "ann", 3)
    assert coordinator.answer(coordinator.handle(Unregister(0, token))) == Done()
    assert isinstance(coordinator.answer(coordinator.handle(RequestBroker(0, token))), UnauthorizedError)
    assert nowhere(coordinator, "ann")
    coordinator.token("ann")
    assert coordinator.assignment("ann").registration == 4


def test_whoever_is_removed_anew_keeps_nobody_else_from_being_forgotten(coordinator: ManualCoordinator) -> None:
    coordinator.settle("bob")
    coordinator.handle(RemoveUser(0, "ann"))
    coordinator.handle(RemoveUser(0, "bob"))
    coordinator.now += DAY
    coordinator.handle(Unregister(0, signed(coordinator, "ann", 1)))
    assert (
        coordinator.core._parts.assignments.forgotten_at()
        == coordinator.record("bob").gone
        < coordinator.record("ann").gone
    )


def test_the_name_may_be_had_by_another_who_gets_nothing_of_the_first(coordinator: ManualCoordinator) -> None:
    old = coordinator.token("ann")
    coordinator.handle(Unregister(0, old))
    answer = coordinator.answer(coordinator.handle(RegisterUser(0, "ann", fresh=True)))
    assert isinstance(answer, Registered)
    actions = coordinator.handle(RequestBroker(7, answer.token))
    (prepare,) = [message for _, message in coordinator.sent(actions, Prepare)]
    assert prepare == Prepare("ann", 2, [], registration=1), "no subscription, and no number given before"
    assert isinstance(coordinator.answer(coordinator.handle(RequestBroker(0, old))), UnauthorizedError)
    assert coordinator.answer(coordinator.handle(Unregister(0, old))) == Done()
    assert "ann" in coordinator.core._parts.assignments, "the one who has left cannot take the other along"


def test_a_broker_that_comes_back_with_a_stay_of_before_is_told_to_release_it(coordinator: ManualCoordinator) -> None:
    coordinator.handle(Lost(coordinator.links.pop("a")))
    assert coordinator.sent(coordinator.handle(RemoveUser(0, "ann")), Release) == []
    assert coordinator.sole(coordinator.hello("a", serving=[StayId("ann", 1)]), Release) == ("a", Release("ann", 1))
    assert nowhere(coordinator, "ann")
    coordinator.token("ann")
    coordinator.handle(Lost(coordinator.links.pop("a")))
    assert coordinator.sole(coordinator.hello("a", serving=[StayId("ann", 1)]), Release) == ("a", Release("ann", 1))
    assert coordinator.assignment("ann").broker is None


def test_a_stay_that_is_newer_than_the_removal_is_not_believed(coordinator: ManualCoordinator) -> None:
    coordinator.handle(RemoveUser(0, "ann"))
    coordinator.handle(Lost(coordinator.links.pop("a")))
    assert coordinator.sole(coordinator.hello("a", serving=[StayId("ann", 9)]), Release) == ("a", Release("ann", 9))
    assert nowhere(coordinator, "ann")
    assert coordinator.record("ann").coming == 9


def test_whoever_leaves_while_it_is_moved_is_released_by_both(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("ann")
    coordinator.handle(Drain(0, "a"))
    for broker in "ab":
        coordinator.say(broker, Load(0.0, 0.0))
    assert coordinator.sole(coordinator.wait(6), Prepare)[0] == "b"
    waiting = coordinator.handle(RequestBroker(9, token))
    assert coordinator.messages(waiting) == []
    actions = coordinator.handle(Unregister(0, token))
    assert sorted(coordinator.sent(actions, Release), key=lambda each: each[0]) == [
        ("a", Release("ann", 1)),
        ("b", Release("ann", 2)),
    ]
    answers = {action.handle: action.answer for action in actions if isinstance(action, Reply)}
    assert answers[0] == Done()
    assert isinstance(answers[9], UnauthorizedError)
    assert nowhere(coordinator, "ann")
    assert coordinator.sent(coordinator.say("b", Prepared("ann", 2)), Release) == [("b", Release("ann", 2))]
    assert coordinator.sent(coordinator.say("b", Arrived("ann", 2)), Release) == [("b", Release("ann", 2))]
    coordinator.wait(60)
    assert nowhere(coordinator, "ann")


def test_whoever_leaves_while_its_broker_is_dead_is_not_placed_again() -> None:
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.settle("ann", 1)
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.wait(5)
    assert coordinator.answer(coordinator.handle(RemoveUser(0, "ann"))) == Done()
    assert coordinator.sent(coordinator.hello("b"), Prepare) == []
    assert nowhere(coordinator, "ann")


def test_what_its_broker_still_says_of_it_changes_nothing(coordinator: ManualCoordinator) -> None:
    coordinator.handle(RemoveUser(0, "ann"))
    coordinator.say("a", Keep(4, "ann", 1, held(3)))
    coordinator.say("a", Presence(["ann"]))
    coordinator.say("a", Progress({"ann": {1: 50}}))
    coordinator.say("a", Released("ann", 1, {1: 50}))
    assert nowhere(coordinator, "ann")


def test_what_the_first_had_read_is_not_counted_to_the_second(coordinator: ManualCoordinator) -> None:
    coordinator.handle(Lost(coordinator.links.pop("a")))
    coordinator.handle(RemoveUser(0, "ann"))
    stay = coordinator.settle("ann", 1)
    assert stay.broker == "b"
    coordinator.hello("a", serving=[StayId("ann", 1)])
    coordinator.say("a", Progress({"ann": {1: 50}}))
    coordinator.say("a", Released("ann", 1, {1: 50}))
    assert [each.cursor for each in coordinator.store.read().held["ann"].values()] == [0]
    coordinator.say("b", Progress({"ann": {1: 7}}))
    assert [each.cursor for each in coordinator.store.read().held["ann"].values()] == [7]


def test_a_crash_before_it_is_stored_leaves_everything_and_after_it_nothing(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("ann")
    actions = coordinator.core.handle(coordinator.now, Unregister(0, token))
    assert len(actions) == 1, "nothing is said before it is stored"
    coordinator.restart()
    assert "ann" in coordinator.core._parts.assignments
    coordinator.hello("a", serving=[StayId("ann", 1)])
    (store,) = coordinator.core.handle(coordinator.now, Unregister(0, token))
    coordinator.store.write(store.changes)  # type: ignore[union-attr]
    coordinator.restart()
    assert nowhere(coordinator, "ann")
    assert coordinator.sole(coordinator.hello("a", serving=[StayId("ann", 1)]), Release) == ("a", Release("ann", 1))


def test_a_name_that_is_read_from_the_store_late_does_not_come_back(coordinator: ManualCoordinator) -> None:
    coordinator.store.amend(lambda keyring: keyring, "bob")
    names = tuple(coordinator.store.unplaced_subscribers())
    coordinator.handle(Amended(coordinator.store.keyring(), names))
    coordinator.handle(RemoveUser(0, "bob"))
    coordinator.handle(Amended(coordinator.store.keyring(), names))
    assert nowhere(coordinator, "bob")
    coordinator.store.amend(lambda keyring: keyring, "bob")
    coordinator.handle(Amended(coordinator.store.keyring(), tuple(coordinator.store.unplaced_subscribers())))
    assert coordinator.assignment("bob").registration == 1


def test_a_token_that_is_newer_than_a_restored_store_is_that_of_another(coordinator: ManualCoordinator) -> None:
    actions = coordinator.handle(RequestBroker(0, signed(coordinator, "ann", 3)))
    assert ("a", Release("ann", 1)) in coordinator.sent(actions, Release)
    assert coordinator.sent(actions, Prepare)[0][1] == Prepare("ann", 2, [], registration=3)


def test_that_somebody_was_removed_is_forgotten_when_no_token_can_be_left() -> None:
    coordinator = ManualCoordinator(limits=CoordinatorLimits(silence=DAY, interval=DAY, token_life=20 * DAY))
    coordinator.hello("a")
    coordinator.settle("ann", 1)
    coordinator.store.amend(lambda keyring: keyring.lasting(coordinator.now + 40 * DAY))
    coordinator.handle(Amended(coordinator.store.keyring()))
    coordinator.handle(RemoveUser(0, "ann"))
    coordinator.wait(39 * DAY)
    assert coordinator.record("ann").gone
    coordinator.wait(2 * DAY)
    assert coordinator.store.read().assignments == []


def test_a_broker_that_serves_is_not_removed(coordinator: ManualCoordinator) -> None:
    for broker, says in (("a", "is serving"), ("b", "is serving")):
        answer = coordinator.answer(coordinator.handle(RemoveBroker(0, broker)))
        assert isinstance(answer, ConflictError)
        assert f"tocsin balance drain {broker} --wait" in str(answer)
        assert says in str(answer) or "joining" in str(answer)
    coordinator.handle(Drain(0, "a"))
    assert "1 subscribers are still there" in str(coordinator.answer(coordinator.handle(RemoveBroker(0, "a"))))
    assert isinstance(coordinator.answer(coordinator.handle(RemoveBroker(0, "x"))), NotFoundError)


def test_a_dead_broker_is_removed_once_its_subscribers_have_another(coordinator: ManualCoordinator) -> None:
    coordinator.handle(Lost(coordinator.links.pop("a")))
    assert "it is away" in str(coordinator.answer(coordinator.handle(RemoveBroker(0, "a"))))
    coordinator.wait(4)
    assert "have no other broker yet" in str(coordinator.answer(coordinator.handle(RemoveBroker(0, "a"))))
    coordinator.say("b", Prepared("ann", 2))
    assert coordinator.answer(coordinator.handle(RemoveBroker(0, "a"))) == Done()
    assert [broker.name for broker in coordinator.store.read().brokers] == ["b"]
    coordinator.restart()
    assert [member.name for member in coordinator.core._parts.registry] == ["b"]


def test_a_drained_broker_that_runs_is_cut_off_once_its_token_is_not_taken(coordinator: ManualCoordinator) -> None:
    coordinator.handle(Drain(0, "b"))
    link = coordinator.links["b"]
    assert not [action for action in coordinator.handle(RemoveBroker(0, "b")) if isinstance(action, Close)]
    assert coordinator.say("b", Load(1.0, 1.0)) == [], "what it says counts for nothing"
    assert coordinator.say("b", Hello("b", "ws://b")) == []
    keyring = coordinator.store.keyring()
    assert keyring.series == {"b": 1}
    assert Close(link) in coordinator.handle(Amended(keyring))
    coordinator.handle(Lost(coordinator.links.pop("b")))
    assert not coordinator.core._parts.registry.dismissed


def test_a_removed_broker_that_comes_again_is_a_new_one(coordinator: ManualCoordinator) -> None:
    coordinator.handle(Drain(0, "b"))
    coordinator.handle(RemoveBroker(0, "b"))
    coordinator.handle(Lost(coordinator.links.pop("b")))
    coordinator.hello("b")
    member = coordinator.core._parts.registry.member("b")
    assert (member.state, member.record.draining) == ("joining", False)
    coordinator.wait(10)
    assert coordinator.core._parts.workload.number("b") is not None, "its forerunner's death is not its own"


def test_a_removed_broker_that_was_dead_comes_again_and_takes_part(coordinator: ManualCoordinator) -> None:
    coordinator.handle(Lost(coordinator.links.pop("b")))
    coordinator.wait(5)
    coordinator.handle(RemoveBroker(0, "b"))
    coordinator.hello("b")
    coordinator.wait(10)
    assert coordinator.core._parts.workload.number("b") is not None


def test_whoever_asks_after_its_removal_can_register_and_be_placed(coordinator: ManualCoordinator) -> None:
    coordinator.handle(RemoveUser(0, "ann"))
    broker, prepare = coordinator.sole(coordinator.request("ann"), Prepare)
    assert coordinator.answer(coordinator.say(broker, Prepared("ann", prepare.stay))) == Located(
        broker, f"ws://{broker}"
    )


@pytest.mark.parametrize("removed", [False, True])
def test_a_broker_that_could_not_prepare_is_asked_again_unless_its_subscriber_has_left(
    coordinator: ManualCoordinator, removed: bool
) -> None:
    assignment = coordinator.assignment("ann")
    coordinator.say("a", Unprepared("ann", assignment.stay, "the data cluster is away"))
    if removed:
        coordinator.handle(RemoveUser(0, "ann"))
    asked = coordinator.sent(coordinator.wait(coordinator.limits.retry + 1), Prepare)
    assert [(broker, each.subscriber, each.stay) for broker, each in asked] == (
        [] if removed else [("a", "ann", assignment.stay)]
    )

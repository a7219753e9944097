"""What subscribers and operators may ask, and what they are answered."""

from __future__ import annotations

import msgspec
import pytest

from tests.coordinator.manual import ManualCoordinator
from tocsin.coordinator.answers import Done, Located, NetworkStatus, Registered
from tocsin.coordinator.events import AskStatus, Balance, Drain, Lost, RegisterBroker, RegisterUser, RequestBroker
from tocsin.coordinator.store.records import Assignment, BrokerRecord
from tocsin.coordinator.tokens import Claims, SigningKey, Verifier
from tocsin.errors import (
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TocsinError,
    UnauthorizedError,
    UnavailableError,
)
from tocsin.model.coordination import Accepted, Hello, Load, Prepare, Prepared, Presence


@pytest.fixture
def coordinator() -> ManualCoordinator:
    """Brokers "a" and "b", and nobody else."""
    coordinator = ManualCoordinator()
    coordinator.hello("a")
    coordinator.hello("b")
    return coordinator


def test_a_broker_is_given_the_key_by_which_it_knows_subscribers(coordinator: ManualCoordinator) -> None:
    (accepted,) = coordinator.messages(coordinator.hello("c"))
    assert isinstance(accepted, Accepted)
    assert Verifier(accepted.trust).verify(coordinator.token("ann"), coordinator.now).name == "ann"
    assert coordinator.store.keyring().signing.secret not in msgspec.json.encode(accepted).decode()


def test_a_subscriber_is_told_its_broker_when_that_is_prepared(coordinator: ManualCoordinator) -> None:
    assert coordinator.sole(coordinator.request("ann"), Prepare) == ("a", Prepare("ann", 1, []))
    assert coordinator.answer(coordinator.say("a", Prepared("ann", 1))) == Located("a", "ws://a")
    assert coordinator.assignment("ann") == Assignment("ann", "a", 1, None, 1)


def test_a_subscriber_that_is_placed_is_told_at_once(coordinator: ManualCoordinator) -> None:
    coordinator.settle("ann")
    assert coordinator.answer(coordinator.request("ann")) == Located("a", "ws://a")
    assert coordinator.assignment("ann").coming == 1


def test_asking_twice_places_once(coordinator: ManualCoordinator) -> None:
    coordinator.request("ann")
    assert coordinator.messages(coordinator.request("ann")) == []
    answers = coordinator.say("a", Prepared("ann", 1))
    assert len(answers) == 2


def test_a_subscriber_of_a_broker_that_is_away_for_a_moment_is_sent_there(coordinator: ManualCoordinator) -> None:
    coordinator.settle("ann")
    coordinator.handle(Lost(coordinator.links["a"]))
    assert coordinator.answer(coordinator.request("ann")) == Located("a", "ws://a")


def test_a_subscriber_of_a_draining_broker_is_placed_elsewhere(coordinator: ManualCoordinator) -> None:
    coordinator.settle("ann")
    coordinator.handle(Drain(0, "a"))
    assert coordinator.sole(coordinator.request("ann"), Prepare)[0] == "b"


def test_better_a_draining_broker_than_none(coordinator: ManualCoordinator) -> None:
    coordinator.settle("ann")
    for broker in "ab":
        coordinator.handle(Drain(0, broker))
    assert coordinator.answer(coordinator.request("ann")) == Located("a", "ws://a")


def test_without_a_broker_there_is_no_place() -> None:
    assert isinstance(ManualCoordinator().answer(ManualCoordinator().request("ann")), UnavailableError)


def test_a_newcomer_goes_where_the_policy_says() -> None:
    coordinator = ManualCoordinator(placement="nearest")
    for link, name, x in ((1, "far", 100.0), (2, "near", 1.0)):
        coordinator.links[name] = link
        coordinator.say(name, Hello(name, f"ws://{name}", location=(x, 0.0)))
    token = coordinator.token("ann")
    assert coordinator.sole(coordinator.handle(RequestBroker(1, token, (0.0, 0.0))), Prepare)[0] == "near"


@pytest.mark.parametrize(
    ("claims", "error"),
    [
        (Claims("ann", "subscriber", 1.0), UnauthorizedError),
        (Claims("a", "broker", 1e12), ForbiddenError),
    ],
)
def test_only_subscribers_with_a_valid_token_are_placed(
    coordinator: ManualCoordinator, claims: Claims, error: type[TocsinError]
) -> None:
    token = coordinator.store.keyring().signing.sign(claims)
    assert isinstance(coordinator.answer(coordinator.handle(RequestBroker(1, token))), error)


def test_a_token_of_another_system_is_worth_nothing(coordinator: ManualCoordinator) -> None:
    token = SigningKey.new().sign(Claims("ann", "subscriber", 1e12))
    assert isinstance(coordinator.answer(coordinator.handle(RequestBroker(1, token))), UnauthorizedError)


@pytest.mark.parametrize("name", ["", "-ann", "ann smith", "a" * 129, "ann\n"])
def test_what_is_no_name_is_not_registered(coordinator: ManualCoordinator, name: str) -> None:
    assert isinstance(coordinator.answer(coordinator.handle(RegisterUser(1, name))), InvalidError)
    assert coordinator.store.read().assignments == []


def test_a_place_that_is_none_is_refused(coordinator: ManualCoordinator) -> None:
    token = coordinator.token("ann")
    assert isinstance(
        coordinator.answer(coordinator.handle(RequestBroker(1, token, (float("nan"), 0.0)))), InvalidError
    )


def test_a_broker_can_be_registered_before_it_comes(coordinator: ManualCoordinator) -> None:
    answer = coordinator.answer(coordinator.handle(RegisterBroker(1, "c", "ws://c", 2.0, (3.0, 4.0))))
    assert isinstance(answer, Registered)
    assert Verifier(coordinator.store.keyring().trust).verify(answer.token, coordinator.now).role == "broker"
    assert BrokerRecord("c", "ws://c", 2.0, (3.0, 4.0)) in coordinator.store.read().brokers


def test_a_broker_that_cannot_be_is_not_registered(coordinator: ManualCoordinator) -> None:
    assert isinstance(coordinator.answer(coordinator.handle(RegisterBroker(1, "c", "ws://c", -1.0))), InvalidError)


def test_draining_an_unknown_broker_names_those_there_are(coordinator: ManualCoordinator) -> None:
    error = coordinator.answer(coordinator.handle(Drain(1, "z")))
    assert isinstance(error, NotFoundError)
    assert "a, b" in str(error)


def test_switches_are_stored_before_they_are_confirmed(coordinator: ManualCoordinator) -> None:
    assert coordinator.answer(coordinator.handle(Balance(1, False))) == Done()
    assert coordinator.answer(coordinator.handle(Drain(1, "a"))) == Done()
    state = coordinator.store.read()
    assert (state.balancing, state.brokers[0].draining) == (False, True)


def test_the_status_tells_how_things_stand(coordinator: ManualCoordinator) -> None:
    coordinator.settle("ann", 7)
    coordinator.say("a", Load(100.0, 120.0, {7: 100.0}))
    coordinator.say("a", Presence(["ann", "bob"]))
    coordinator.say("a", Presence(offline=["bob"]))
    coordinator.handle(Drain(0, "b"))
    coordinator.handle(RegisterBroker(0, "c", "ws://c"))
    status = coordinator.answer(coordinator.handle(AskStatus(1)))
    assert isinstance(status, NetworkStatus)
    assert [(line.name, line.state, line.subscribers, line.online) for line in status.brokers] == [
        ("a", "serving", 1, 1),
        ("b", "draining", 0, 0),
        ("c", "away", 0, 0),
    ]
    assert (status.brokers[0].load, status.brokers[0].incoming, status.brokers[0].outgoing) == (200.0, 100.0, 120.0)
    assert (status.subscribers, status.moving, status.moved, status.highest) == (1, 0, 0, 200.0)

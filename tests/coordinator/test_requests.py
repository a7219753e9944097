"""What subscribers and operators may ask, and what they are answered."""

from __future__ import annotations

import msgspec
import pytest

from tests.coordinator.desk import Desk
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
def desk() -> Desk:
    """Brokers "a" and "b", and nobody else."""
    desk = Desk()
    desk.hello("a")
    desk.hello("b")
    return desk


def test_a_broker_is_given_the_key_by_which_it_knows_subscribers(desk: Desk) -> None:
    (accepted,) = desk.messages(desk.hello("c"))
    assert isinstance(accepted, Accepted)
    assert Verifier(accepted.trust).verify(desk.token("ann"), desk.now).name == "ann"
    assert desk.store.keyring().signing.secret not in msgspec.json.encode(accepted).decode()


def test_a_subscriber_is_told_its_broker_when_that_is_prepared(desk: Desk) -> None:
    assert desk.sole(desk.request("ann"), Prepare) == ("a", Prepare("ann", 1, []))
    assert desk.answer(desk.say("a", Prepared("ann", 1))) == Located("a", "ws://a")
    assert desk.place("ann") == Assignment("ann", "a", 1, None, 1)


def test_a_subscriber_that_is_placed_is_told_at_once(desk: Desk) -> None:
    desk.settle("ann")
    assert desk.answer(desk.request("ann")) == Located("a", "ws://a")
    assert desk.place("ann").coming == 1


def test_asking_twice_places_once(desk: Desk) -> None:
    desk.request("ann")
    assert desk.messages(desk.request("ann")) == []
    answers = desk.say("a", Prepared("ann", 1))
    assert len(answers) == 2


def test_a_subscriber_of_a_broker_that_is_away_for_a_moment_is_sent_there(desk: Desk) -> None:
    desk.settle("ann")
    desk.handle(Lost(desk.links["a"]))
    assert desk.answer(desk.request("ann")) == Located("a", "ws://a")


def test_a_subscriber_of_a_draining_broker_is_placed_elsewhere(desk: Desk) -> None:
    desk.settle("ann")
    desk.handle(Drain(0, "a"))
    assert desk.sole(desk.request("ann"), Prepare)[0] == "b"


def test_better_a_draining_broker_than_none(desk: Desk) -> None:
    desk.settle("ann")
    for broker in "ab":
        desk.handle(Drain(0, broker))
    assert desk.answer(desk.request("ann")) == Located("a", "ws://a")


def test_without_a_broker_there_is_no_place() -> None:
    assert isinstance(Desk().answer(Desk().request("ann")), UnavailableError)


def test_a_newcomer_goes_where_the_policy_says() -> None:
    desk = Desk(placement="nearest")
    for link, name, x in ((1, "far", 100.0), (2, "near", 1.0)):
        desk.links[name] = link
        desk.say(name, Hello(name, f"ws://{name}", location=(x, 0.0)))
    token = desk.token("ann")
    assert desk.sole(desk.handle(RequestBroker(1, token, (0.0, 0.0))), Prepare)[0] == "near"


@pytest.mark.parametrize(
    ("claims", "error"),
    [
        (Claims("ann", "subscriber", 1.0), UnauthorizedError),
        (Claims("a", "broker", 1e12), ForbiddenError),
    ],
)
def test_only_subscribers_with_a_valid_token_are_placed(desk: Desk, claims: Claims, error: type[TocsinError]) -> None:
    token = desk.store.keyring().signing.sign(claims)
    assert isinstance(desk.answer(desk.handle(RequestBroker(1, token))), error)


def test_a_token_of_another_system_is_worth_nothing(desk: Desk) -> None:
    token = SigningKey.new().sign(Claims("ann", "subscriber", 1e12))
    assert isinstance(desk.answer(desk.handle(RequestBroker(1, token))), UnauthorizedError)


@pytest.mark.parametrize("name", ["", "-ann", "ann smith", "a" * 129, "ann\n"])
def test_what_is_no_name_is_not_registered(desk: Desk, name: str) -> None:
    assert isinstance(desk.answer(desk.handle(RegisterUser(1, name))), InvalidError)
    assert desk.store.read().assignments == []


def test_a_place_that_is_none_is_refused(desk: Desk) -> None:
    token = desk.token("ann")
    assert isinstance(desk.answer(desk.handle(RequestBroker(1, token, (float("nan"), 0.0)))), InvalidError)


def test_a_broker_can_be_registered_before_it_comes(desk: Desk) -> None:
    answer = desk.answer(desk.handle(RegisterBroker(1, "c", "ws://c", 2.0, (3.0, 4.0))))
    assert isinstance(answer, Registered)
    assert Verifier(desk.store.keyring().trust).verify(answer.token, desk.now).role == "broker"
    assert BrokerRecord("c", "ws://c", 2.0, (3.0, 4.0)) in desk.store.read().brokers


def test_a_broker_that_cannot_be_is_not_registered(desk: Desk) -> None:
    assert isinstance(desk.answer(desk.handle(RegisterBroker(1, "c", "ws://c", -1.0))), InvalidError)


def test_draining_an_unknown_broker_names_those_there_are(desk: Desk) -> None:
    error = desk.answer(desk.handle(Drain(1, "z")))
    assert isinstance(error, NotFoundError)
    assert "a, b" in str(error)


def test_switches_are_stored_before_they_are_confirmed(desk: Desk) -> None:
    assert desk.answer(desk.handle(Balance(1, False))) == Done()
    assert desk.answer(desk.handle(Drain(1, "a"))) == Done()
    state = desk.store.read()
    assert (state.balancing, state.brokers[0].draining) == (False, True)


def test_the_status_tells_how_things_stand(desk: Desk) -> None:
    desk.settle("ann", 7)
    desk.say("a", Load(100.0, 120.0, {7: 100.0}))
    desk.say("a", Presence(["ann", "bob"]))
    desk.say("a", Presence(offline=["bob"]))
    desk.handle(Drain(0, "b"))
    desk.handle(RegisterBroker(0, "c", "ws://c"))
    status = desk.answer(desk.handle(AskStatus(1)))
    assert isinstance(status, NetworkStatus)
    assert [(line.name, line.state, line.subscribers, line.online) for line in status.brokers] == [
        ("a", "serving", 1, 1),
        ("b", "draining", 0, 0),
        ("c", "away", 0, 0),
    ]
    assert (status.brokers[0].load, status.brokers[0].incoming, status.brokers[0].outgoing) == (200.0, 100.0, 120.0)
    assert (status.subscribers, status.moving, status.moved, status.highest) == (1, 0, 0, 200.0)

"""Who may use a channel or a feed: the broker says who asks, and applies what the data cluster told it."""

from __future__ import annotations

import pytest
from msgspec import Raw

from tests.broker.world import Bench, sent, told
from tocsin.broker import actions, events
from tocsin.model import control, coordination
from tocsin.model.messages import Share
from tocsin.model.subscriber import Error, Login, Publish, Published, Subscribe, Subscribed
from tocsin.model.terms import Terms

NEAR = "Near"
CALLS = "Calls"


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.cluster.terms = {NEAR: Terms(bound=("user",)), CALLS: Terms(groups=("fire", "police"))}
    bench.connect()
    bench.serve("ann", 1)
    bench.serve("bob", 2)
    return bench


def subscribe(bench: Bench, session: int, channel: str, **parameters: str) -> Subscribed | Error:
    """The answer to a subscriber, with the data cluster's and the coordinator's in between."""
    did = bench.say(session, Subscribe(1, channel, dict(parameters)))
    did += bench.answer_data(did)
    for keep in told(did, coordination.Keep):
        did += bench.tell(coordination.Kept(keep.ref))
    answers = [answer for answer in sent(did, session) if isinstance(answer, Subscribed | Error)]
    assert len(answers) == 1
    return answers[0]


def refusal(answer: Subscribed | Error) -> str:
    assert isinstance(answer, Error)
    assert answer.code == "forbidden"
    return answer.message


def test_the_data_cluster_is_told_who_asks(bench: Bench) -> None:
    bench.tell(coordination.Prepare("cat", 1, []))
    bench.do(events.Opened(3))
    bench.say(3, Login("token-cat+police+fire"))
    [attach] = told(bench.say(3, Subscribe(1, CALLS, {})), control.Attach)
    assert (attach.subscriber, attach.groups) == ("cat", ("police", "fire"))


def test_a_bound_parameter_is_filled_in_and_each_has_a_subscription_of_their_own(bench: Bench) -> None:
    ann, bob = subscribe(bench, 1, NEAR, event="flood"), subscribe(bench, 2, NEAR, event="flood")
    assert isinstance(ann, Subscribed)
    assert isinstance(bob, Subscribed)
    assert ann.held.parameters == {"event": "flood", "user": "ann"}
    assert bob.held.parameters == {"event": "flood", "user": "bob"}
    assert ann.held.subscription != bob.held.subscription


@pytest.mark.parametrize("held", [False, True])
def test_nobody_subscribes_in_the_name_of_another(bench: Bench, held: bool) -> None:
    if held:
        subscribe(bench, 1, NEAR, event="flood")
    answer = subscribe(bench, 2, NEAR, event="flood", user="ann")
    assert "'user' is always the name in the token, bob, and was given as \"ann\": leave it out" in refusal(answer)


def test_ones_own_name_may_be_given(bench: Bench) -> None:
    assert subscribe(bench, 1, NEAR, user="ann") == subscribe(bench, 1, NEAR)


@pytest.mark.parametrize("held", [False, True])
def test_a_channel_for_a_group_takes_nobody_else(bench: Bench, held: bool) -> None:
    bench.tell(coordination.Prepare("cat", 1, []))
    bench.do(events.Opened(3))
    bench.say(3, Login("token-cat+police"))
    if held:
        assert isinstance(subscribe(bench, 3, CALLS), Subscribed)
    assert "channel Calls is for the groups fire, police" in refusal(subscribe(bench, 1, CALLS))
    assert isinstance(subscribe(bench, 3, CALLS), Subscribed)


def test_other_terms_hold_from_the_moment_they_are_told(bench: Bench) -> None:
    assert isinstance(subscribe(bench, 1, "Open"), Subscribed)
    bench.tell(control.Changed("Open", Terms(groups=("police",))))
    assert "channel Open is for the groups police" in refusal(subscribe(bench, 2, "Open"))
    bench.tell(control.Changed("Open", Terms()))
    assert isinstance(subscribe(bench, 2, "Open"), Subscribed)


def test_what_is_held_is_attached_again_as_the_broker_itself(bench: Bench) -> None:
    subscribe(bench, 1, NEAR, event="flood")
    bench.do(events.Lost("data"))
    [attach] = told(bench.do(events.Connected("data")), control.Attach)
    assert (attach.subscriber, attach.parameters) == (None, [{"event": "flood", "user": "ann"}])


def test_records_go_on_in_the_name_of_whoever_published_them(bench: Bench) -> None:
    bench.say(1, Publish(1, "places", [Raw(b'{"x":1}')]))
    bench.say(2, Publish(1, "places", [Raw(b'{"x":2}'), Raw(b'{"x":3}')]))
    [batch] = [action for action in bench.wait(1) if isinstance(action, actions.PublishBatch)]
    records = [Raw(b'{"x":1}')], [Raw(b'{"x":2}'), Raw(b'{"x":3}')]
    assert batch.shares == [Share("ann", records[0]), Share("bob", records[1])]
    did = bench.do(events.BatchPublished(batch.batch, denied={0: "not for subscribers"}))
    assert sent(did, 1) == [Error("forbidden", "not for subscribers", 1)]
    assert sent(did, 2) == [Published(1, 2)]

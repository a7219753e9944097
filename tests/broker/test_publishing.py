"""Publishing through the broker."""

from __future__ import annotations

import pytest
from msgspec import Raw

from tests.broker.world import Bench, sent
from tocsin.broker import actions, events
from tocsin.broker.limits import BrokerLimits
from tocsin.model.messages import Refusal
from tocsin.model.subscriber import Error, Publish, Published

RECORD = Raw(b'{"x":1}')


@pytest.fixture
def bench() -> Bench:
    bench = Bench(BrokerLimits(publish_bytes=100, publishing_bytes=200))
    bench.connect()
    bench.serve("ann", 1)
    bench.serve("bob", 2)
    return bench


def batches(did: list[actions.Action]) -> list[actions.PublishBatch]:
    return [action for action in did if isinstance(action, actions.PublishBatch)]


def test_publications_to_a_feed_share_a_batch_and_each_is_told_its_own_part(bench: Bench) -> None:
    assert batches(bench.say(1, Publish(7, "places", [RECORD, RECORD]))) == []
    bench.say(2, Publish(9, "places", [RECORD]))
    [batch] = batches(bench.wait(0.05))
    assert batch.feed == "places"
    assert [(share.subscriber, len(share.records)) for share in batch.shares] == [("ann", 2), ("bob", 1)]
    did = bench.do(events.BatchPublished(batch.batch, [Refusal(2, "no")]))
    assert sent(did, 1) == [Published(7, 2)]
    assert sent(did, 2) == [Published(9, 0, [Refusal(0, "no")])]


def test_a_large_batch_does_not_wait(bench: Bench) -> None:
    assert len(batches(bench.say(1, Publish(1, "places", [RECORD] * 20)))) == 1


def test_a_batch_that_fails_is_told_to_all(bench: Bench) -> None:
    bench.say(1, Publish(1, "places", [RECORD]))
    [batch] = batches(bench.wait(0.05))
    did = bench.do(events.BatchFailed(batch.batch, "unavailable", "not now", 2.0))
    assert sent(did, 1) == [Error("unavailable", "not now", 1, 2.0)]
    assert bench.do(events.BatchFailed(batch.batch, "unavailable", "again")) == []


def test_too_much_on_its_way_is_refused_until_it_is_answered(bench: Bench) -> None:
    [batch] = batches(bench.say(1, Publish(1, "places", [RECORD] * 25)))
    [error] = sent(bench.say(1, Publish(2, "places", [RECORD] * 5)), 1)
    assert isinstance(error, Error)
    assert error.code == "busy"
    bench.do(events.BatchPublished(batch.batch))
    assert sent(bench.say(1, Publish(3, "places", [RECORD] * 5)), 1) == []


def test_publishing_nothing_is_answered_at_once(bench: Bench) -> None:
    assert sent(bench.say(1, Publish(1, "places", [])), 1) == [Published(1, 0)]


def test_a_deeply_nested_record_is_refused_before_it_travels_with_those_of_others(bench: Bench) -> None:
    deep = Raw(b'{"x":' + b"[" * 100 + b"]" * 100 + b"}")
    [error] = sent(bench.say(1, Publish(1, "places", [RECORD, deep])), 1)
    assert isinstance(error, Error)
    assert (error.code, "100 levels" in error.message) == ("invalid", True)
    brackets_in_a_text = Raw(b'{"x":"' + b"[" * 40 + b'\\"' + b"[" * 80 + b'"}')
    [batch] = batches(bench.say(2, Publish(9, "places", [brackets_in_a_text])))
    assert [len(share.records) for share in batch.shares] == [1]


def test_a_batch_refused_as_a_whole_is_sent_again_share_by_share(bench: Bench) -> None:
    bench.say(1, Publish(7, "places", [RECORD, RECORD]))
    bench.say(2, Publish(9, "places", [RECORD]))
    [batch] = batches(bench.wait(0.05))
    anns, bobs = batches(bench.do(events.BatchFailed(batch.batch, "invalid", "the body is not JSON")))
    assert [share.subscriber for one in (anns, bobs) for share in one.shares] == ["ann", "bob"]
    did = bench.do(events.BatchFailed(anns.batch, "invalid", "the body is not JSON"))
    assert sent(did, 1) == [Error("invalid", "the body is not JSON", 7)]
    assert sent(bench.do(events.BatchPublished(bobs.batch)), 2) == [Published(9, 1)]
    assert len(batches(bench.say(1, Publish(3, "places", [RECORD] * 25)))) == 1, "nothing counts as on its way"


def test_a_batch_that_cannot_be_taken_now_is_not_sent_apart(bench: Bench) -> None:
    bench.say(1, Publish(7, "places", [RECORD]))
    bench.say(2, Publish(9, "places", [RECORD]))
    [batch] = batches(bench.wait(0.05))
    did = bench.do(events.BatchFailed(batch.batch, "busy", "later", 1.0))
    assert batches(did) == []
    assert sent(did, 2) == [Error("busy", "later", 9, 1.0)]


def test_refusals_that_are_not_listed_are_counted_for_whom_they_concern(bench: Bench) -> None:
    bench.say(1, Publish(7, "places", [RECORD] * 4))
    bench.say(2, Publish(9, "places", [RECORD] * 2))
    [batch] = batches(bench.wait(0.05))
    did = bench.do(events.BatchPublished(batch.batch, [Refusal(4, "no"), Refusal(0, "no")], {}, {0: 2}))
    assert sent(did, 1) == [Published(7, 1, [Refusal(0, "no")], 2)]
    assert sent(did, 2) == [Published(9, 1, [Refusal(0, "no")])]

"""Publishing through the broker."""

from __future__ import annotations

import pytest
from msgspec import Raw

from tests.broker.world import Bench, sent
from tocsin.broker import actions, events
from tocsin.broker.limits import Limits
from tocsin.model.records import Refusal
from tocsin.model.subscriber import Error, Publish, Published

RECORD = Raw(b'{"x":1}')


@pytest.fixture
def bench() -> Bench:
    bench = Bench(Limits(publish_bytes=100, publishing_bytes=200))
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

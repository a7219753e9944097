"""A publisher: its numbers, and what it sends again."""

from __future__ import annotations

import pytest

from tocsin.overlay.dialogue import Introduce, Known, Publish, Stored
from tocsin.overlay.events import Tick
from tocsin.overlay.publisher import (
    MOST_UNCONFIRMED,
    ClusterHeadLost,
    ClusterHeadOpened,
    ClusterHeadSaid,
    OpenClusterHead,
    OverlayPublisher,
    PublishContent,
    PublisherAction,
    Reject,
    SendClusterHead,
)


def connected(publisher: OverlayPublisher, sequence: int, *, continued: bool = False) -> list[PublisherAction]:
    publisher.handle(0.0, ClusterHeadOpened())
    return publisher.handle(0.0, ClusterHeadSaid(Known(sequence, "h.1", continued)))


def test_what_is_published_before_the_head_is_there_is_sent_then() -> None:
    publisher = OverlayPublisher("p")
    assert publisher.handle(0.0, PublishContent({"n": 1})) == [OpenClusterHead()]
    assert publisher.handle(0.0, ClusterHeadOpened()) == [SendClusterHead(Introduce("p"))]
    assert publisher.handle(0.0, ClusterHeadSaid(Known(4))) == [SendClusterHead(Publish(5, {"n": 1.0}))]
    assert publisher.handle(0.0, PublishContent({"n": 2})) == [SendClusterHead(Publish(6, {"n": 2.0}))]


def test_what_is_not_stored_is_sent_again_with_its_number() -> None:
    publisher = OverlayPublisher("p")
    connected(publisher, 0)
    for number in (1, 2, 3):
        publisher.handle(0.0, PublishContent({"n": number}))
    publisher.handle(0.0, ClusterHeadSaid(Stored(1)))
    publisher.handle(0.0, ClusterHeadLost())
    assert publisher.wake() == 1.0
    assert publisher.handle(1.0, Tick()) == [OpenClusterHead()]
    assert publisher.handle(1.0, ClusterHeadOpened()) == [SendClusterHead(Introduce("p", "h.1"))]
    assert connected(publisher, 2, continued=True) == [SendClusterHead(Publish(3, {"n": 3.0}))]
    publisher.handle(0.0, ClusterHeadSaid(Stored(3)))
    assert publisher.waiting == 0


@pytest.mark.parametrize("known", [0, 1, 70])
def test_what_a_head_with_another_log_knows_is_not_what_was_sent(known: int) -> None:
    publisher = OverlayPublisher("p")
    connected(publisher, 0)
    for number in (1, 2, 3):
        publisher.handle(0.0, PublishContent({"n": number}))
    publisher.handle(0.0, ClusterHeadSaid(Stored(1)))
    publisher.handle(0.0, ClusterHeadLost())
    sent = [SendClusterHead(Publish(known + 1, {"n": 2.0})), SendClusterHead(Publish(known + 2, {"n": 3.0}))]
    assert connected(publisher, known) == sent
    publisher.handle(0.0, ClusterHeadSaid(Stored(known + 2)))
    assert publisher.waiting == 0


@pytest.mark.parametrize("waiting", [0, 1])
def test_the_next_number_follows_the_highest_that_the_head_knows(waiting: int) -> None:
    publisher = OverlayPublisher("p")
    connected(publisher, 50 - waiting)
    for _ in range(waiting):
        publisher.handle(0.0, PublishContent({"n": 1}))
    publisher.handle(0.0, ClusterHeadLost())
    connected(publisher, 51, continued=True)
    assert publisher.waiting == 0
    assert publisher.handle(0.0, PublishContent({"n": 2})) == [SendClusterHead(Publish(52, {"n": 2.0}))]


def test_what_cannot_be_a_publication_gets_no_number() -> None:
    publisher = OverlayPublisher("p")
    connected(publisher, 0)
    (rejected,) = publisher.handle(0.0, PublishContent({"n": [1]}))
    assert isinstance(rejected, Reject)
    assert "values are strings, numbers, true or false" in rejected.reason
    assert publisher.handle(0.0, PublishContent({"n": 1})) == [SendClusterHead(Publish(1, {"n": 1.0}))]


def test_only_so_many_are_under_way_and_the_rest_follows_as_they_are_stored() -> None:
    publisher = OverlayPublisher("p")
    for number in range(1, MOST_UNCONFIRMED + 101):
        publisher.handle(0.0, PublishContent({"n": number}))
    sent = connected(publisher, 7)
    assert sent == [
        SendClusterHead(Publish(7 + number, {"n": float(number)})) for number in range(1, MOST_UNCONFIRMED + 1)
    ]
    assert publisher.handle(0.0, PublishContent({"n": 0})) == []
    next_ones = publisher.handle(0.0, ClusterHeadSaid(Stored(10)))
    assert next_ones == [
        SendClusterHead(Publish(7 + number, {"n": float(number)}))
        for number in range(MOST_UNCONFIRMED + 1, MOST_UNCONFIRMED + 4)
    ]
    publisher.handle(0.0, ClusterHeadLost())
    assert connected(publisher, 20, continued=True)[0] == SendClusterHead(Publish(21, {"n": 14.0}))


def test_a_head_that_has_stored_more_than_was_sent_here_is_believed() -> None:
    publisher = OverlayPublisher("p")
    connected(publisher, 0)
    publisher.handle(0.0, ClusterHeadSaid(Stored(50)))
    assert publisher.handle(0.0, PublishContent({"n": 1})) == [SendClusterHead(Publish(51, {"n": 1.0}))]

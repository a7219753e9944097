"""What one connection to an edge or to a head may hold."""

from __future__ import annotations

from tests.overlay.bench import Bench, edge
from tocsin.overlay import events
from tocsin.overlay.dialogue import Introduce, Known, Publish, Refused, Stored, Subscribe
from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head


def test_one_connection_holds_one_subscription_and_leaves_nothing_behind() -> None:
    bench = edge(1)
    assert isinstance(bench.core, Edge)
    for name in ("ann", "bob", "ann", "cy"):
        bench.tell(events.ClientSaid(7, Subscribe(name, f"n > {len(bench.links)}")))
        assert len(bench.core.subscriptions.by_filter) == 2
    bench.tell(events.ClientLost(7))
    assert list(bench.core.subscriptions.by_filter.values()) == [["s0"]]
    assert bench.core.subscriptions.get("ann") is None


def test_a_filter_that_cannot_be_read_ends_what_its_connection_had() -> None:
    bench = edge(1)
    assert isinstance(bench.core, Edge)
    bench.tell(events.ClientSaid(7, Subscribe("ann", "n > 1")))
    bench.tell(events.ClientSaid(7, Subscribe("ann", "n >")))
    assert list(bench.core.subscriptions.by_filter.values()) == [["s0"]]


def test_a_connection_that_introduces_itself_again_and_again_is_one_publisher() -> None:
    bench = Bench(Head("h", "h.1"))
    for name in ("p", "q", "p"):
        bench.tell(events.ClientSaid(1, Introduce(name)))
    bench.tell(events.ClientSaid(1, Publish(1, {"n": 1.0})))
    bench.tell(events.LogStored(1))
    assert [each.message for each in bench.clients[-1:]] == [Stored(1)]
    bench.tell(events.ClientSaid(2, Introduce("q")))
    bench.tell(events.ClientLost(1))
    bench.tell(events.ClientSaid(2, Publish(1, {"n": 1.0})))
    bench.tell(events.LogStored(2))
    assert (bench.clients[-1].client, bench.clients[-1].message) == (2, Stored(1))


def test_nobody_uses_up_the_numbers_of_a_publisher() -> None:
    bench = Bench(Head("h", "h.1"))
    bench.tell(events.ClientSaid(1, Introduce("p")))
    bench.tell(events.ClientSaid(1, Publish(2**61, {"n": 1.0})))
    (refused,) = [each.message for each in bench.clients if isinstance(each.message, Refused)]
    assert "left out" in refused.message
    bench.tell(events.ClientSaid(1, Introduce("p")))
    assert bench.clients[-1].message == Known(0, "h.1")

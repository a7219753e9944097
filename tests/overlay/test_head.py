"""A head and its publishers."""

from __future__ import annotations

from tocsin.overlay.actions import AppendLog, CloseClient, SendClient
from tocsin.overlay.dialogue import Introduce, Known, Publish, Stored
from tocsin.overlay.events import ClientLost, ClientSaid, LogStored
from tocsin.overlay.head import Head


def test_whoever_had_a_publishers_name_is_closed_when_another_comes_with_it() -> None:
    head = Head("h", "h.1")
    head.handle(0.0, ClientSaid(1, Introduce("p")))
    came = head.handle(1.0, ClientSaid(2, Introduce("p")))
    assert came == [CloseClient(1, "the publisher has come again"), SendClient(2, Known(0, "h.1"))]
    head.handle(2.0, ClientLost(1))
    assert isinstance(head.handle(3.0, ClientSaid(2, Publish(1, {"a": 1.0})))[0], AppendLog)
    assert SendClient(2, Stored(1)) in head.handle(4.0, LogStored(1))


def test_who_introduces_itself_twice_on_a_connection_stays() -> None:
    head = Head("h", "h.1")
    head.handle(0.0, ClientSaid(1, Introduce("p")))
    assert [type(action) for action in head.handle(1.0, ClientSaid(1, Introduce("p")))] == [SendClient]

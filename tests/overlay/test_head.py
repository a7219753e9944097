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


def test_a_program_that_takes_the_place_of_another_begins_after_all_that_was_taken_from_it() -> None:
    head = Head("h", "h.1")
    head.handle(0.0, ClientSaid(1, Introduce("p")))
    for sequence in (1, 2):
        head.handle(1.0, ClientSaid(1, Publish(sequence, {"a": 1.0})))
    # Neither is stored yet: told so, the other would call something of its own 1, and be told that it is stored.
    assert head.handle(2.0, ClientSaid(2, Introduce("p"))) == [CloseClient(1, "the publisher has come again")]
    assert [each for each in head.handle(3.0, LogStored(1)) if isinstance(each, SendClient)] == []
    assert [each for each in head.handle(4.0, LogStored(2)) if isinstance(each, SendClient)] == [
        SendClient(2, Known(2, "h.1"))
    ]
    assert isinstance(head.handle(5.0, ClientSaid(2, Publish(3, {"b": 1.0})))[0], AppendLog)
    assert SendClient(2, Stored(3)) in head.handle(6.0, LogStored(3))


def test_who_is_gone_before_it_could_be_told_what_is_stored_is_told_nothing() -> None:
    head = Head("h", "h.1")
    head.handle(0.0, ClientSaid(1, Introduce("p")))
    head.handle(1.0, ClientSaid(1, Publish(1, {"a": 1.0})))
    head.handle(2.0, ClientSaid(2, Introduce("p")))
    head.handle(3.0, ClientLost(2))
    assert [each for each in head.handle(4.0, LogStored(1)) if isinstance(each, SendClient)] == []
    assert head.handle(5.0, ClientSaid(3, Introduce("p"))) == [SendClient(3, Known(1, "h.1"))]


def test_who_introduces_itself_twice_on_a_connection_stays() -> None:
    head = Head("h", "h.1")
    head.handle(0.0, ClientSaid(1, Introduce("p")))
    assert [type(action) for action in head.handle(1.0, ClientSaid(1, Introduce("p")))] == [SendClient]

"""A head and its publishers."""

from __future__ import annotations

import re
from collections import deque

from tocsin.overlay.actions import Action, AppendLog, CloseClient, CloseLink, SendClient, SendLink
from tocsin.overlay.dialogue import Introduce, Known, Publish, Stored
from tocsin.overlay.events import ClientLost, ClientSaid, Event, LinkLost, LinkOpened, LinkSaid, LogStored, RowFound
from tocsin.overlay.head import Head
from tocsin.overlay.messages import Routed, Sync


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


class Tree:
    """Heads, and what they say to each other, in order; a circle in which it went round for ever would be noticed."""

    def __init__(self, *names: str) -> None:
        self.heads = {name: Head(name, f"{name}.1") for name in names}
        self.closed: list[CloseLink] = []
        self._said: deque[tuple[str, Event]] = deque()
        self._links: set[frozenset[str]] = set()

    def link(self, one: str, other: str) -> None:
        self._links.add(frozenset({one, other}))
        self.tell(one, LinkOpened(other, is_head=True))
        self.tell(other, LinkOpened(one, is_head=True))
        self.settle()

    def tell(self, head: str, event: Event) -> None:
        for action in self.heads[head].handle(0.0, event):
            self._do(head, action)

    def settle(self) -> list[tuple[str, str, Routed]]:
        """The publications that were passed on, from whom to whom, until all is quiet."""
        passed: list[tuple[str, str, Routed]] = []
        for _ in range(1000):
            if not self._said:
                return passed
            head, event = self._said.popleft()
            if isinstance(event, LinkSaid) and head in self.heads and not self._stands(head, event.broker):
                continue
            if isinstance(event, LinkSaid) and isinstance(event.message, Routed):
                passed.append((event.broker, head, event.message))
            if head in self.heads:
                self.tell(head, event)
        raise AssertionError("it goes round for ever")

    def _stands(self, one: str, other: str) -> bool:
        return frozenset({one, other}) in self._links

    def _do(self, head: str, action: Action) -> None:
        match action:
            case SendLink(broker, message):
                self._said.append((broker, LinkSaid(head, message)))
            case CloseLink(broker):
                self.closed.append(action)
                self._links.discard(frozenset({head, broker}))
                self._said.append((broker, LinkLost(head)))


def test_a_circle_of_heads_is_found_when_it_is_closed_and_that_link_ended() -> None:
    tree = Tree("a", "b", "c", "d")
    for one, other in (("a", "b"), ("b", "c"), ("a", "d")):
        tree.link(one, other)
    tree.tell("c", LinkOpened("edge", is_head=False))
    tree.tell("c", LinkSaid("edge", Sync(["x > 0"], [])))
    tree.settle()
    assert not tree.closed
    tree.link("c", "a")
    assert {each.broker for each in tree.closed} <= {"a", "c"}
    assert re.match("heads are linked in a circle, [abc], [abc], [abc]: clear the overlay.head", tree.closed[0].reason)
    tree.tell("d", RowFound("p", 1, {"x": 1.0}))
    tree.tell("d", LogStored(1))
    assert [(one, other) for one, other, _ in tree.settle()] == [("d", "a"), ("a", "b"), ("b", "c"), ("c", "edge")]


def test_what_comes_back_to_its_head_is_not_passed_on() -> None:
    tree = Tree("a", "b", "c")
    tree.link("a", "b")
    tree.link("a", "c")
    tree.tell("a", LinkSaid("c", Sync(["x > 0"], [])))
    tree.tell("a", LinkSaid("b", Routed("a", 1, "p", 1, {"x": 1.0})))
    assert tree.settle() == []
    tree.tell("a", LinkSaid("b", Routed("b", 1, "p", 1, {"x": 1.0})))
    assert [(one, other) for one, other, _ in tree.settle()] == [("a", "c")]

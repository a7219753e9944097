"""A head and its publishers."""

from __future__ import annotations

import re
from collections import deque

import pytest

from tocsin.overlay.actions import Action, AppendLog, CloseClient, CloseLink, SendClient, SendLink
from tocsin.overlay.dialogue import Introduce, Known, Publish, Stored
from tocsin.overlay.events import ClientLost, ClientSaid, Event, LinkLost, LinkOpened, LinkSaid, LogStored, RowFound
from tocsin.overlay.head import Head
from tocsin.overlay.load import Metrics
from tocsin.overlay.messages import (
    Change,
    ClusterAccept,
    ClusterAlive,
    ClusterLoad,
    ClusterView,
    Control,
    Fetch,
    Found,
    FromLink,
    Interrupted,
    LocalLoad,
    Mark,
    Restored,
    Routed,
    SessionEnd,
    SessionRequest,
    Sync,
)


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


def edge_and_head(head: Head) -> None:
    head.handle(0.0, LinkOpened("h2", is_head=True))
    head.handle(0.0, LinkOpened("e", is_head=False))
    head.handle(0.0, LinkSaid("h2", Sync(["x > 0"], ["to = '*'", "to = 'far'"])))
    head.handle(0.0, LinkSaid("e", Sync(["x > 0"], ["to = 'e'"])))


FOUND = Found("1", "h2", "made up", {}, 1, 2**40, 2**40, [])
LIES: list[FromLink] = [
    Routed("h2", 7, "p", 7, {"x": 1.0}),
    Mark("h2", 2**40),
    Interrupted(["h2"]),
    Restored(["h3"]),
    ClusterLoad("h2", Metrics(0.0, 0.0, 0.1), "OK", 1),
    Control({"to": "far"}, "e", FOUND),
    Control({"edges": "h2"}, "e", ClusterView(["h2"])),
    Control({"to": "h"}, "e", ClusterAccept("x")),
    Control({"to": "h2"}, "e", ClusterAlive("x")),
    Control({"to": "far"}, "f", SessionRequest("x")),
    Control({"load": "h"}, "e", LocalLoad("f", "h", Metrics(0.9, 0.9, 0.9), "N/A", [])),
    Control({"load": "h2"}, "e", LocalLoad("e", "h2", Metrics(0.9, 0.9, 0.9), "N/A", [])),
]
TRUTHS: list[FromLink] = [
    Sync([], []),
    Change(False, ["x > 1"], []),
    Control({"to": "*"}, "e", Fetch("1", ["x > 0"], {}, [])),
    Control({"load": "h"}, "e", LocalLoad("e", "h", Metrics(0.1, 0.1, 0.1), "OK", [])),
    Control({"to": "far"}, "e", SessionRequest("x")),
    Control({"to": "far"}, "e", SessionEnd("x")),
]


@pytest.mark.parametrize("lie", LIES, ids=repr)
def test_an_edge_that_speaks_as_a_head_or_for_another_is_not_believed_and_its_link_is_ended(lie: FromLink) -> None:
    head = Head("h", "h.1")
    edge_and_head(head)
    done = head.handle(1.0, LinkSaid("e", lie))
    (closed,) = [each for each in done if isinstance(each, CloseLink)]
    assert re.fullmatch("e is an edge, and has said [A-Za-z]+, which is not for it to say", closed.reason)
    assert (closed.broker, closed.circle, head.links.open) == ("e", False, ["h2"])
    # All that anybody else hears of it is that the edge wants nothing any more.
    assert {type(each.message) for each in done if isinstance(each, SendLink)} <= {Change}
    assert head.handle(1.0, LinkOpened("e", is_head=False))


@pytest.mark.parametrize("truth", TRUTHS, ids=repr)
def test_what_an_edge_has_to_say_is_heard(truth: FromLink) -> None:
    head = Head("h", "h.1")
    edge_and_head(head)
    assert not any(isinstance(each, CloseLink) for each in head.handle(1.0, LinkSaid("e", truth)))


@pytest.mark.parametrize("lie", [each for each in LIES if not isinstance(each, Restored)], ids=repr)
def test_a_head_may_say_all_of_it(lie: FromLink) -> None:
    head = Head("h", "h.1")
    edge_and_head(head)
    assert not any(isinstance(each, CloseLink) for each in head.handle(1.0, LinkSaid("h2", lie)))


def test_filters_of_another_version_that_somebody_far_away_fetches_with_are_answered_with_everything() -> None:
    head = Head("h", "h.1")
    edge_and_head(head)
    for sequence, x in enumerate((1.0, -1.0), 1):
        head.handle(0.0, RowFound("p", sequence, {"x": x}))
        head.handle(0.0, LogStored(sequence))
    fetch = Fetch("1", ["x > 0", "x ≈ 7"], {"h": {"h.1": 0}}, [])
    done = head.handle(1.0, LinkSaid("h2", Control({"to": "h"}, "far", fetch)))
    (sent,) = [each.message for each in done if isinstance(each, SendLink) and isinstance(each.message, Control)]
    assert isinstance(sent, Control)
    assert isinstance(sent.body, Found)
    # Whoever asked looks at each by itself.
    assert [each.offset for each in sent.body.publications] == [1, 2]


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

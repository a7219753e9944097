"""Whoever says nonsense hurts only themselves: the head goes on, and others keep what they have."""

from __future__ import annotations

from math import inf, nan

import pytest

from tocsin.slices import events
from tocsin.slices.actions import Action, Close, EndNode, Process, Send, SendHead, StoreCommits
from tocsin.slices.head import HeadCore
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import (
    AddSlices,
    Commit,
    CommitRefused,
    Declined,
    Epoch,
    FromHead,
    FromNode,
    Grant,
    Hello,
    Leave,
    MayLeave,
    NodeReport,
    Prepared,
    Released,
    RemoveSlices,
    SliceLoad,
    SlicePart,
    SliceState,
    UpdateSlices,
    Welcome,
)
from tocsin.slices.node import NodeCore

BEFORE = Epoch(0, 7)


class Head:
    """A head of four slices, of which node a has all."""

    def __init__(self) -> None:
        self.core = HeadCore(1, [0, 0, 0, 0], limits=SliceLimits(settling_seconds=1.0))
        self.say(0.0, 1, Hello("a", 1.0, dict.fromkeys(range(4), BEFORE)))

    def say(self, now: float, connection: int, message: FromNode) -> list[Action]:
        return self.core.handle(now, events.NodeSaid(connection, message))

    def owners(self) -> list[str | None]:
        return [owned.owner for owned in self.core.ownership.slices]


@pytest.mark.parametrize("capacity", [0.0, -1.0, nan, inf])
def test_a_capacity_that_is_none_ends_the_connection(capacity: float) -> None:
    head = Head()
    assert head.say(1.0, 2, Hello("b", capacity, {})) == [Close(2, "a node has a name, and a capacity above 0")]
    assert head.owners() == ["a"] * 4


def test_whoever_does_not_say_hello_first_is_not_heard() -> None:
    head = Head()
    assert head.say(1.0, 2, Leave()) == [Close(2, "a node says hello first")]


def test_a_second_hello_on_a_connection_changes_nothing() -> None:
    head = Head()
    assert head.say(1.0, 1, Hello("z", 1.0, {})) == []
    assert head.core.registry.get("z") is None


def test_nobody_gets_what_somebody_else_has_by_claiming_it() -> None:
    head = Head()
    (answer,) = head.say(1.0, 2, Hello("b", 1.0, {0: Epoch(99, 99), 1: BEFORE, -1: BEFORE, 7: BEFORE}))
    assert isinstance(answer, Send)
    assert isinstance(answer.message, Welcome)
    assert answer.message.grants == []
    assert head.owners() == ["a"] * 4


@pytest.mark.parametrize(
    "message",
    [
        Prepared(99),
        Released(99),
        Declined({0: Epoch(1, 1), 99: Epoch(1, 1), -1: Epoch(1, 1)}, "no"),
        Declined({}, ""),
        NodeReport(nan, nan, nan, nan, [SliceLoad(0, -5, 10**30), SliceLoad(99, 5), SliceLoad(-1, 5)]),
    ],
)
def test_what_makes_no_sense_changes_nothing(message: FromNode) -> None:
    head = Head()
    head.say(1.0, 2, Hello("b", 1.0, {}))
    head.say(1.1, 2, message)
    assert head.owners() == ["a"] * 4


def test_a_commit_of_somebody_elses_slice_is_refused_and_stores_nothing() -> None:
    head = Head()
    head.say(1.0, 2, Hello("b", 1.0, {}))
    epoch = head.core.ownership[0].epoch
    answers = head.say(1.1, 2, Commit(1, [SlicePart(0, epoch, 0, 5, 5)], ["stolen"]))
    assert answers == [Send(2, CommitRefused(1, {0: 0}))]


def test_what_a_lost_connection_says_late_is_not_heard() -> None:
    head = Head()
    head.core.handle(1.0, events.NodeLost(1))
    epoch = head.core.ownership[0].epoch
    answers = head.say(1.1, 1, Commit(1, [SlicePart(0, epoch, 0, 5, 5)], ["late"]))
    assert not any(isinstance(each, StoreCommits) for each in answers)


def test_a_node_that_comes_on_another_connection_has_that_one_only() -> None:
    head = Head()
    answers = head.say(1.0, 2, Hello("a", 1.0, {}))
    assert answers[0] == Close(1, "a has come on another connection")
    assert head.owners() == ["a"] * 4


class Node:
    """A node that has slice 0 from position 5 on, ready."""

    def __init__(self) -> None:
        self.core = NodeCore("a", limits=SliceLimits(batch_seconds=0.0))
        self.core.handle(0.0, events.HeadOpened())
        self.epoch = Epoch(1, 1)
        self.hear(Welcome(1, [Grant(0, self.epoch, SliceState.AVAILABLE, 5)]))
        self.core.handle(0.0, events.SlicesPrepared({0: self.epoch}))

    def hear(self, message: FromHead) -> list[Action]:
        return self.core.handle(0.0, events.HeadSaid(message))


@pytest.mark.parametrize(
    "order",
    [
        Welcome(9, []),
        RemoveSlices(1, {0: Epoch(1, 1)}),
        RemoveSlices(9, {0: Epoch(1, 2), 5: Epoch(1, 1)}),
        UpdateSlices(9, 3, [Grant(0, Epoch(0, 9), SliceState.IN_SESSION, 0)]),
        UpdateSlices(9, 3, [Grant(4, Epoch(1, 1), SliceState.AVAILABLE, 0)]),
        MayLeave(9),
    ],
)
def test_an_order_that_is_old_or_of_another_epoch_changes_nothing(order: FromHead) -> None:
    node = Node()
    assert not any(isinstance(each, EndNode) for each in node.hear(order))
    assert node.core.slices[0].is_open
    assert node.core.slices[0].position == 5


def test_a_taker_reads_nothing_before_its_gate_is_open() -> None:
    node = Node()
    given = Epoch(1, 9)
    node.hear(AddSlices(2, 1, [Grant(3, given, SliceState.IN_SESSION, 40)]))
    said = node.core.handle(0.0, events.SlicesPrepared({3: given}))
    assert SendHead(Prepared(1)) in said
    node.core.handle(0.0, events.Processed(1, [], []))
    begun = [each for each in node.core.handle(1.0, events.Tick()) if isinstance(each, Process)]
    assert [list(each.slices) for each in begun] == [[0]]
    node.core.handle(1.0, events.Processed(2, [], []))
    node.hear(UpdateSlices(3, 1, [Grant(3, given, SliceState.AVAILABLE, 77)]))
    begun = [each for each in node.core.handle(2.0, events.Tick()) if isinstance(each, Process)]
    assert begun[0].slices[3] == (given, 77)

"""Who owns which slice, as an operator is told."""

from __future__ import annotations

from typing import Literal

import msgspec

NodeState = Literal["serving", "joining", "draining", "leaving", "lost", "stuck", "failing"]


class SliceFigures(msgspec.Struct, frozen=True):
    """A slice: whose it is, what comes for it and waits in the log in bytes, and how far the dataset has it.

    ``records`` are those stored since the head's start; ``taker`` is whom it moves to. ``pause`` is the time from
    the last commit of who had it before to the first of its owner, in seconds; None if nobody had since the start.
    ``left_out`` says why its owner leaves it out for now, if it does.
    """

    slice: int
    owner: str | None
    rate: int
    backlog: int
    position: int
    records: int
    taker: str | None = None
    pause: float | None = None
    left_out: str = ""


class NodeFigures(msgspec.Struct, frozen=True):
    """A node with its part of a feed. ``load`` is its class; processor and memory are parts of 1, all as last told.

    ``problem`` says why it does not get on at all, if that is so; figures of the log are old then.
    """

    name: str
    state: NodeState
    load: str
    capacity: float
    slices: int
    rate: int
    backlog: int
    cpu: float
    memory: float
    rows: float
    batch_seconds: float
    problem: str = ""


class FeedSlices(msgspec.Struct, frozen=True):
    """A feed's slices and nodes. Where it is not shared, ``reason`` says why, and the data cluster has all of it.

    ``moved`` counts slices that have changed hands since the head's start, ``decision`` is what balancing said last.
    ``declined`` says which nodes cannot process the feed, and why.
    """

    feed: str
    dataset: str
    shared: bool
    reason: str = ""
    term: int = 0
    slices: list[SliceFigures] = []
    nodes: list[NodeFigures] = []
    moved: int = 0
    decision: str = ""
    declined: dict[str, str] = {}


class NodesNeeded(msgspec.Struct, frozen=True):
    """Whether there are too many nodes, or too few: how many more are ``wanted``, and which one is ``spare``, if any.

    Where that is ``elastic``, who is spare is emptied, and ``leaving`` until it has gone; else it is only told.
    """

    elastic: bool = False
    wanted: int = 0
    spare: str = ""
    leaving: list[str] = []


class SlicesStatus(msgspec.Struct, frozen=True):
    """All feeds; ``sharing`` unless the settings say otherwise, ``drained`` whom an operator wants to be empty."""

    sharing: bool
    drained: list[str]
    feeds: list[FeedSlices]
    needed: NodesNeeded = NodesNeeded()


class Draining(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a node is to be empty."""

    on: bool

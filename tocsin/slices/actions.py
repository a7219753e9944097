"""What the head and a processing node want done, in order."""

from __future__ import annotations

import msgspec

from tocsin.balance.control.controller import Controller
from tocsin.balance.control.observation import Observation
from tocsin.slices.messages import Commit, Epoch, FromHead, FromNode


class Action(msgspec.Struct, frozen=True):
    """Base of all actions."""


class Send(Action, frozen=True):
    """Of the head: a message for a node's connection."""

    connection: int
    message: FromHead


class Close(Action, frozen=True):
    """Of the head: ends a connection; the core has forgotten it already."""

    connection: int
    reason: str


class StoreCommits(Action, frozen=True):
    """Of the head: several nodes' files and the positions they reach, as one commit of the dataset.

    To be answered with Stored or StoreFailed, in order. A head of an older ``term`` must not be able to store any more.

    Args:
        nodes: who has offered the commits, in their order.
    """

    number: int
    term: int
    commits: list[Commit]
    markers: dict[int, int]
    nodes: list[str] = []


class Decide(Action, frozen=True):
    """Of the head: asks the controller, which may take a while; to be answered with Decided."""

    round: int
    controller: Controller
    now: float
    observed: Observation


class SendHead(Action, frozen=True):
    """Of a node: a message for the head."""

    message: FromNode


class Prepare(Action, frozen=True):
    """Of a node: make it possible to process these slices, without processing anything yet."""

    slices: dict[int, Epoch]


class Forget(Action, frozen=True):
    """Of a node: let go of what was kept for these slices."""

    slices: dict[int, Epoch]


class Process(Action, frozen=True):
    """Of a node: read slices from these positions on, process, write and sync; to be answered once, with the epochs.

    Should another come before it was answered, that answer will be thrown away, and the work may be given up.
    """

    batch: int
    slices: dict[int, tuple[Epoch, int]]


class Discard(Action, frozen=True):
    """Of a node: these files will never count, as the head was not told of them."""

    files: list[str]


class EndNode(Action, frozen=True):
    """Of a node: it has nothing more to do, and ends."""

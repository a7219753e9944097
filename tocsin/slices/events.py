"""What can happen to the head and to a processing node."""

from __future__ import annotations

import msgspec

from tocsin.balance.control.controller import Decision
from tocsin.slices.messages import Epoch, FromHead, FromNode, SliceLoad, SlicePart


class Event(msgspec.Struct, frozen=True):
    """Base of all events."""


class Tick(Event, frozen=True):
    """Time has passed."""


class NodeSaid(Event, frozen=True):
    """At the head: a node says something, on a connection that the driver has numbered."""

    connection: int
    message: FromNode


class LogReaches(Event, frozen=True):
    """At the head: how far each slice of the log goes, as far as it could be seen; to be told again and again.

    Args:
        checking: slices of which something is offered that could not be looked into yet.
    """

    ends: list[int]
    checking: frozenset[int] = frozenset()


class NodeLost(Event, frozen=True):
    """At the head: a connection is over."""

    connection: int


class Stored(Event, frozen=True):
    """At the head: what was to be stored is on disk, and counts."""

    number: int


class StoreFailed(Event, frozen=True):
    """At the head: it is not, and never will be; the driver has made sure of that."""

    number: int
    reason: str


class Decided(Event, frozen=True):
    """At the head: the controller has answered."""

    round: int
    decision: Decision


class Drain(Event, frozen=True):
    """At the head: an operator wants a node to be emptied, or no more."""

    node: str
    on: bool = True


class Spare(Event, frozen=True):
    """At the head: a node is not needed, and is to be emptied unless it comes anew; or it is needed after all.

    Said again, it changes nothing.
    """

    node: str
    on: bool = True


class HeadOpened(Event, frozen=True):
    """At a node: the connection to the head stands. One that is opened anew was lost before."""


class HeadLost(Event, frozen=True):
    """At a node: it does not any more."""


class HeadSaid(Event, frozen=True):
    """At a node: the head says something."""

    message: FromHead


class SlicesPrepared(Event, frozen=True):
    """At a node: these could be processed at once."""

    slices: dict[int, Epoch]


class PreparationFailed(Event, frozen=True):
    """At a node: these cannot be processed here."""

    slices: dict[int, Epoch]
    reason: str


class Processed(Event, frozen=True):
    """At a node: a batch is written and synced. Without parts, there was nothing to read."""

    batch: int
    parts: list[SlicePart]
    files: list[str]


class ProcessingFailed(Event, frozen=True):
    """At a node: a batch could not be processed; it is tried again."""

    batch: int
    reason: str


class Gauged(Event, frozen=True):
    """At a node: what the driver has measured; of slices that the node no longer has, nothing is passed on.

    ``problem``: why the log cannot be looked at, so that what is said of slices is old; empty if it can.
    """

    cpu: float
    memory: float
    rows: float
    batch_seconds: float
    slices: list[SliceLoad]
    problem: str = ""


class LeaveWanted(Event, frozen=True):
    """At a node: it is to end when others have its slices."""

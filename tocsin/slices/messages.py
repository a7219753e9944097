"""What the head and the processing nodes tell each other, on one connection for each node, which the node opens."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

LONG_REASON: Final = 1024
"""The most characters of a reason."""
SHORT_REASON: Final = 120
"""Of one of many reasons."""


class SliceState(StrEnum):
    """The two states of a slice at a node (figure 12 of the chapter)."""

    AVAILABLE = "available"  # it is read and processed
    IN_SESSION = "in-load-balancing-session"  # it is not: what comes for it waits in the log


class Epoch(NamedTuple):
    """Under which a slice is owned: each time it is given to somebody, by a higher one.

    Args:
        term: of the head; each start of a head has a higher one.
        grant: counts what that head has given.
    """

    term: int
    grant: int


class Grant(msgspec.Struct, frozen=True):
    """A slice as a node is to have it. Where it is available, it is read from ``position`` on."""

    slice: int
    epoch: Epoch
    state: SliceState
    position: int


class SlicePart(msgspec.Struct, frozen=True):
    """What a batch has of a slice: the records between two positions of its log, and how many they are."""

    slice: int
    epoch: Epoch
    begin: int
    end: int
    records: int


class SliceLoad(msgspec.Struct, frozen=True):
    """What comes for a slice in bytes per second, and how many bytes of it wait in the log."""

    slice: int
    rate: int
    backlog: int = 0


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A node's first message: how much it can do, in a unit that is the same for all, and what it has had."""

    node: str
    capacity: float
    holding: dict[int, Epoch]
    leaving: bool = False


class NodeReport(msgspec.Struct, frozen=True, tag="report"):
    """How a node is: the parts of processor and memory in use, rows per second, seconds per batch, and its slices.

    Args:
        problem: why it does not get on with anything; empty if it does.
        left_out: slices that it leaves out for now, as they alone make batches fail, and why.
    """

    cpu: float
    memory: float
    rows: float
    batch_seconds: float
    slices: list[SliceLoad]
    problem: str = ""
    left_out: dict[int, str] = {}


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    """A batch that is written and synced: whole or not at all. ``files`` are names that only the drivers understand."""

    batch: int
    parts: list[SlicePart]
    files: list[str]


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The taker could process what it was given in a session at once."""

    session: int


class Released(msgspec.Struct, frozen=True, tag="released"):
    """The giver has nothing of these slices in hand: all its commits of them are answered."""

    session: int


class Declined(msgspec.Struct, frozen=True, tag="declined"):
    """A node cannot process these slices, and says why."""

    slices: dict[int, Epoch]
    reason: str


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """A node wants to go, once others have its slices."""


FromNode = Hello | NodeReport | Commit | Prepared | Released | Declined | Leave


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """The answer to Hello: all that the node has from now on. What else it has, it drops."""

    number: int
    grants: list[Grant]


class AddSlices(msgspec.Struct, frozen=True, tag="add"):
    """*Add DPS.* ``session`` is 0 where the slices had no owner; the node then has them at once."""

    number: int
    session: int
    grants: list[Grant]


class UpdateSlices(msgspec.Struct, frozen=True, tag="update"):
    """*Update DPS's state.* What becomes available is read from the position that is given with it."""

    number: int
    session: int
    grants: list[Grant]


class RemoveSlices(msgspec.Struct, frozen=True, tag="remove"):
    """*Remove DPS.*"""

    number: int
    slices: dict[int, Epoch]


class CommitAccepted(msgspec.Struct, frozen=True, tag="accepted"):
    """A commit counts, and is on disk."""

    batch: int


class CommitRefused(msgspec.Struct, frozen=True, tag="refused"):
    """A commit does not count, nothing of it; where its slices go on."""

    batch: int
    positions: dict[int, int]


class MayLeave(msgspec.Struct, frozen=True, tag="may-leave"):
    """A node that drains has no slices any more."""

    number: int


Order = Welcome | AddSlices | UpdateSlices | RemoveSlices | MayLeave
"""What changes a node; numbered, so that one that comes twice counts once."""
FromHead = Order | CommitAccepted | CommitRefused

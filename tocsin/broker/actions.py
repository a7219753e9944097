"""What a broker's core wants done: its words to the drivers, to be carried out in order."""

from __future__ import annotations

import msgspec

from tocsin.model import control, coordination
from tocsin.model.messages import Share
from tocsin.model.trust import Trust


class Action(msgspec.Struct, frozen=True):
    """Base of all actions."""


class Send(Action, frozen=True):
    """One text message for a connection."""

    session: int
    frame: bytes


class SendMany(Action, frozen=True):
    """One text message for each of these connections: notifications that are the same for all of them."""

    sessions: list[int]
    frame: bytes


class Close(Action, frozen=True):
    """Ends a connection, after what was sent to it. The core has forgotten the session already."""

    session: int
    code: int
    reason: str


class ReadLater(Action, frozen=True):
    """Reads nothing from a connection for so many seconds: it says too much, and what it says waits where it is."""

    session: int
    seconds: float


class ToData(Action, frozen=True):
    """A request for the data cluster."""

    message: control.Request


class ToCoordinator(Action, frozen=True):
    """A message for the coordinator."""

    message: coordination.FromBroker


class PublishBatch(Action, frozen=True):
    """Records for a feed, by publisher; to be answered with BatchPublished or BatchFailed, whatever happens."""

    batch: int
    feed: str
    shares: list[Share]


class TrustLearned(Action, frozen=True):
    """What tokens are checked with from now on."""

    trust: Trust

"""What can happen to a broker: the drivers' words to its core."""

from __future__ import annotations

from typing import Literal

import msgspec

from tocsin.model import control, coordination
from tocsin.model.messages import Refusal

LinkName = Literal["data", "coordinator"]
FromData = (
    control.Welcome
    | control.Attached
    | control.Detached
    | control.Results
    | control.Pong
    | control.Error
    | control.Executed
    | control.Behind
    | control.Dropped
    | control.Changed
    | control.Failing
)


class Event(msgspec.Struct, frozen=True):
    """Base of all events."""


class Opened(Event, frozen=True):
    """A subscriber's connection is open. The driver never uses a session's number again."""

    session: int


class Received(Event, frozen=True):
    """A whole message of a connection."""

    session: int
    data: bytes


class Flushed(Event, frozen=True):
    """So many bytes of what was sent to a connection still wait; to be told at the latest when nothing does."""

    session: int
    waiting: int


class Closed(Event, frozen=True):
    """A connection is gone, whoever closed it."""

    session: int


class Connected(Event, frozen=True):
    """A link is there (again)."""

    link: LinkName


class Lost(Event, frozen=True):
    """A link is gone, with whatever was on it."""

    link: LinkName


class Told(Event, frozen=True):
    """A message of the data cluster or of the coordinator."""

    message: FromData | coordination.FromCoordinator


class BatchPublished(Event, frozen=True):
    """The data cluster has taken a batch, but for those records, and but for shares that were denied, and why.

    ``unlisted`` counts the refused records that are not listed, by the number of the share.
    """

    batch: int
    refused: list[Refusal] = []
    denied: dict[int, str] = {}
    unlisted: dict[int, int] = {}


class BatchFailed(Event, frozen=True):
    """Nothing of a batch was taken, as far as is known."""

    batch: int
    code: str
    message: str
    retry_after: float | None = None


class Tick(Event, frozen=True):
    """The time the core asked for by ``wake`` has come."""

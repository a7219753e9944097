"""What happens to a subscriber's core: on its connections, and by the wish of its application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Start:
    """Go online, or, after a failure, try again; whatever was known stays known. ``token`` says who this is."""

    token: str


@dataclass(frozen=True)
class Stop:
    """Go offline. The subscriptions stay, and so does what a later :class:`Start` needs."""


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class BrokerFound:
    """The coordinator's answer: the subscriber belongs to the broker at ``url``."""

    url: str


@dataclass(frozen=True)
class CoordinatorFailed:
    """The coordinator did not answer, or with an error."""

    reason: str = ""


@dataclass(frozen=True)
class Opened:
    """A connection that was asked for is open."""

    connection: int


@dataclass(frozen=True)
class Received:
    """A message came on a connection."""

    connection: int
    text: str | bytes


@dataclass(frozen=True)
class Lost:
    """A connection has ended, or could not be opened. ``code`` is WebSocket's; 1006 when there was no close frame."""

    connection: int
    code: int = 1006


@dataclass(frozen=True)
class Subscribe:
    """The application wants a subscription, and calls it ``ref``, a number it has not used before.

    Handling it raises TypeError when the parameters cannot be written as JSON.
    """

    ref: int
    channel: str
    parameters: dict[str, Any] = field(default_factory=dict)
    live: bool = False


@dataclass(frozen=True)
class Unsubscribe:
    """The application no longer wants what it called ``ref``. Nothing of it is delivered from now on, unless another
    ``ref`` has the same subscription."""

    ref: int


@dataclass(frozen=True)
class Taken:
    """The application has had the notes of a subscription up to this execution, and needs none of them again.

    ``epoch`` is that of the note.
    """

    subscription: int
    execution: int
    epoch: int = 0


@dataclass(frozen=True)
class Publish:
    """The application publishes records, each the JSON text of one, and calls this ``ref``."""

    ref: int
    feed: str
    records: Sequence[bytes]


Event = (
    Start
    | Stop
    | Tick
    | BrokerFound
    | CoordinatorFailed
    | Opened
    | Received
    | Lost
    | Subscribe
    | Unsubscribe
    | Taken
    | Publish
)

"""What happens to a subscriber's core: on its connections, and by what its application calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct


class Start(Struct, frozen=True):
    """Go online, or, after a failure, try again; whatever was known stays known. ``token`` says who this is."""

    token: str


class Stop(Struct, frozen=True):
    """Go offline. The subscriptions stay, and so does what a later :class:`Start` needs."""


class Tick(Struct, frozen=True):
    """Time has passed."""


class BrokerFound(Struct, frozen=True):
    """The coordinator's answer: the subscriber belongs to the broker at ``url``."""

    url: str


class CoordinatorFailed(Struct, frozen=True):
    """The coordinator did not answer, or with an error."""

    reason: str = ""


class Opened(Struct, frozen=True):
    """A connection that was asked for is open."""

    connection: int


class Received(Struct, frozen=True):
    """A message came on a connection."""

    connection: int
    text: str | bytes


class Lost(Struct, frozen=True):
    """A connection has ended, or could not be opened. ``code`` is WebSocket's; 1006 when there was no close frame."""

    connection: int
    code: int = 1006


class Subscribe(Struct, frozen=True):
    """The application wants a subscription, and calls it ``ref``, a number it has not used before.

    Handling it raises TypeError when the parameters cannot be written as JSON.
    """

    ref: int
    channel: str
    parameters: dict[str, Any] = {}
    live: bool = False


class Unsubscribe(Struct, frozen=True):
    """The application no longer wants what it called ``ref``. Nothing of it is delivered from now on, unless another
    ``ref`` has the same subscription."""

    ref: int


class Taken(Struct, frozen=True):
    """The application has had the notes of a subscription up to this execution, and needs none of them again.

    ``epoch`` is that of the note.
    """

    subscription: int
    execution: int
    epoch: int = 0


class Publish(Struct, frozen=True):
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

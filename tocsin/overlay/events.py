"""What can happen to a broker of the overlay."""

from __future__ import annotations

import msgspec

from tocsin.content.values import Value
from tocsin.overlay.dialogue import ToEdge, ToHead
from tocsin.overlay.messages import FromLink


class Event(msgspec.Struct, frozen=True):
    """Base of all events."""


class LinkOpened(Event, frozen=True):
    """A link to another broker stands: to a head, or to an edge. A link that is opened anew was lost before."""

    broker: str
    is_head: bool


class LinkLost(Event, frozen=True):
    """It does not any more."""

    broker: str


class LinkSaid(Event, frozen=True):
    """Another broker says something."""

    broker: str
    message: FromLink


class ClientSaid(Event, frozen=True):
    """Somebody at an edge or a head says something, on a connection that the driver has numbered."""

    client: int
    message: ToEdge | ToHead


class ClientLost(Event, frozen=True):
    """A connection is over."""

    client: int


class RowFound(Event, frozen=True):
    """A channel that a head follows has found a row: the head publishes it itself, unless it has done so before."""

    publisher: str
    sequence: int
    content: dict[str, Value]


class Flushed(Event, frozen=True):
    """Little of what was sent on a connection still waits, as AwaitFlush wanted to know."""

    client: int


class LogStored(Event, frozen=True):
    """A head's log is stored up to an offset."""

    offset: int


class Gauged(Event, frozen=True):
    """What the driver has measured of an edge.

    Args:
        matching_seconds: the average matching delay; without subscriptions, what it is with one.
        bandwidth: bytes per second that can be sent.
        input_seconds: how long a publication waits to be matched.
        output_seconds: how long what is sent waits.
        cpu: the part of the processor in use.
        memory: the bytes in use, of ``memory_bytes``; each subscription takes ``subscription_bytes``.
        arrived: publications that have come since the last time, if the driver sees them before they are matched;
            otherwise they count when they are.
        sent: bytes that were sent to subscribers since the last time, also of what they had missed, if the driver
            counts them; otherwise what is sent of each publication counts as it comes.
    """

    matching_seconds: float
    bandwidth: float
    input_seconds: float = 0.0
    output_seconds: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    memory_bytes: float = 1.0
    subscription_bytes: float = 0.0
    arrived: int | None = None
    sent: int | None = None


class Tick(Event, frozen=True):
    """Time has passed."""

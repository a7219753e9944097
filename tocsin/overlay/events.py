"""What can happen to a broker of the overlay."""

from __future__ import annotations

import msgspec

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

    session: int
    message: ToEdge | ToHead


class ClientLost(Event, frozen=True):
    """A connection is over."""

    session: int


class LogStored(Event, frozen=True):
    """A head's log is stored up to an offset."""

    offset: int


class Tick(Event, frozen=True):
    """Time has passed."""

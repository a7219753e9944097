"""What can happen on a broker's control connection: the drivers' words to its core."""

from __future__ import annotations

from typing import Any

import msgspec

from tocsin.model.control import Notice
from tocsin.model.messages import ProblemDetails, Pulled


class Event(msgspec.Struct, frozen=True):
    """Base of all events."""


class Opened(Event, frozen=True):
    """The connection is open; what happens from now on is told to the core."""


class Received(Event, frozen=True):
    """A whole message of the broker."""

    text: bytes | str


class Noticed(Event, frozen=True):
    """The broker is to be told something; a channel's executions come in order."""

    notice: Notice


class Writable(Event, frozen=True):
    """The connection has taken the last message, and can take another."""


class Outcome(Event, frozen=True):
    """Base of what comes of a :class:`~tocsin.data.control.actions.CarryOut` or ``ReadOn``."""


class Subscribed(Outcome, frozen=True):
    """The broker holds these BE subscriptions of ``channel``, whose name is as it was created, in the order asked for.

    ``parameters`` are canonical, with those that are bound. ``rates`` are λ of each as far as it is known, for the next
    ``seconds``.
    """

    channel: str
    bes: list[int]
    parameters: list[dict[str, Any]]
    rates: list[float | None]
    seconds: float


class Unsubscribed(Outcome, frozen=True):
    """So many of the BE subscriptions were held by the broker, and are not any more."""

    count: int


class PartRead(Outcome, frozen=True):
    """A part of what was to be pulled."""

    part: Pulled


class RequestFailed(Outcome, frozen=True):
    """The storage has refused a request, or failed."""

    problem: ProblemDetails

"""The messages between a broker and the coordinator: one JSON object per WebSocket text message, told by its ``type``.

A subscriber's stays on brokers are counted: ``stay`` grows with each, so that what is said of an earlier one is known
to be late. All of these may be said again, and whoever has acted on one already answers as before; so whatever was in
flight when a connection broke is simply sent once more.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from tocsin.model.messages import LARGEST, BeId
from tocsin.model.subscriber import Cursors, Held
from tocsin.model.terms import SubscriberName
from tocsin.model.trust import Trust

AWAY_SECONDS: Final = 120.0
"""Whoever has lost their connection counts as there for so long, unless the coordinator says otherwise."""


class CoordinationMessage(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of all messages."""


class StayId(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber on a broker, for the ``stay``-th time anywhere."""

    subscriber: SubscriberName
    stay: Annotated[int, Meta(ge=0, le=LARGEST)]


class Hello(CoordinationMessage, frozen=True, tag="hello"):
    """The first message of a broker: who it is, and whom it serves and is prepared for.

    Many of them are told in parts, all but the last with ``more``; together they count as one.
    """

    broker: str
    url: str
    serving: list[StayId] = []
    prepared: list[StayId] = []
    capacity: float = 1.0
    location: tuple[float, float] | None = msgspec.field(default=None, name="place")
    more: bool = False


class Accepted(CoordinationMessage, frozen=True, tag="accepted"):
    """The answer to :class:`Hello`. ``trust`` is what subscribers' tokens are checked with.

    Whoever has been without a connection for ``away_seconds`` is away: nothing need be pulled for them any more.
    """

    trust: Trust
    away_seconds: float = AWAY_SECONDS


class Trusted(CoordinationMessage, frozen=True, tag="trusted"):
    """From now on tokens are checked with this: there is another key, or tokens were withdrawn."""

    trust: Trust


class Prepare(CoordinationMessage, frozen=True, tag="prepare"):
    """Get ready for a subscriber: hold its subscriptions. Whoever connects may still be elsewhere.

    ``registration`` counts how often the name was registered anew after its bearer had been removed: the stay is for
    tokens of the same one alone, for those of another are another person's.
    Many subscriptions are told in parts, all but the last with ``more``; together they count as one.
    """

    subscriber: str
    stay: int
    subscriptions: list[Held]
    more: bool = False
    registration: int = 0


class Prepared(CoordinationMessage, frozen=True, tag="prepared"):
    """The answer to :class:`Prepare`: what is new is collected from now on."""

    subscriber: str
    stay: int


class Unprepared(CoordinationMessage, frozen=True, tag="unprepared"):
    """The other answer to :class:`Prepare`: it cannot be done, and why."""

    subscriber: str
    stay: int
    reason: str


class Handover(CoordinationMessage, frozen=True, tag="handover"):
    """Tell the subscriber to go to ``url``, and go on serving it. ``stay`` is the one it is to leave."""

    subscriber: str
    stay: int
    url: str


class Absent(CoordinationMessage, frozen=True, tag="absent"):
    """The answer to :class:`Handover` when the subscriber is not connected: it may be moved without being told."""

    subscriber: str
    stay: int


class Arrived(CoordinationMessage, frozen=True, tag="arrived"):
    """A subscriber has logged in for this stay."""

    subscriber: str
    stay: int


class Release(CoordinationMessage, frozen=True, tag="release"):
    """Let a subscriber go: it has arrived elsewhere, or will not come here after all."""

    subscriber: str
    stay: int


class Released(CoordinationMessage, frozen=True, tag="released"):
    """The answer to :class:`Release`, with how far the subscriber had acknowledged."""

    subscriber: str
    stay: int
    cursors: Cursors = {}


class Keep(CoordinationMessage, frozen=True, tag="keep"):
    """A subscription was made or given up, and the subscriber is told when it is stored.

    ``was`` are other numbers under which it may be stored, and then is no more. With ``unasked`` the broker says so of
    itself, since the data cluster has another number, spelling or history for it, or has it no more: it says nothing
    about where the subscriber is, and if it is stored under no such number, the subscriber has given it up, and that
    counts.
    """

    ref: int
    subscriber: str
    stay: int
    held: Held
    gone: bool = False
    unasked: bool = False
    was: tuple[BeId, ...] = ()


class Kept(CoordinationMessage, frozen=True, tag="kept"):
    """The answer to :class:`Keep`: it would outlive a crash."""

    ref: int


class Progress(CoordinationMessage, frozen=True, tag="progress"):
    """How far subscribers have acknowledged, since this was last said: subscriber → subscription → execution.

    Of those who are not the broker's, do not come to it and have not just left it, this counts for nothing.
    """

    cursors: dict[str, Cursors]


class Load(CoordinationMessage, frozen=True, tag="load"):
    """A broker's load, bytes per second: in all, and the rates of those BE subscriptions whose rate has changed.

    What it takes in and sends out it has measured itself, as moving averages with a time constant of ``span`` seconds.
    The rates are as the data cluster says them.
    """

    incoming: float
    outgoing: float
    rates: dict[int, float] = {}
    span: float = 60.0


class Presence(CoordinationMessage, frozen=True, tag="presence"):
    """Who has connected and who has gone since this was last said."""

    online: list[str] = []
    offline: list[str] = []


class Beat(CoordinationMessage, frozen=True, tag="beat"):
    """A broker's sign of life, when it has nothing else to say."""


class Refused(CoordinationMessage, frozen=True, tag="refused"):
    """The coordinator cannot act on a message, and why."""

    code: str
    message: str
    details: dict[str, Any] = {}


FromBroker = Hello | Prepared | Unprepared | Absent | Arrived | Released | Keep | Progress | Load | Presence | Beat
FromCoordinator = Accepted | Trusted | Prepare | Handover | Release | Kept | Refused

"""What a subscriber's core wants done: on its connections, and told to its application."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from tocsin.model.messages import Refusal
from tocsin.model.subscriber import Held, Note


class ConnectionState(StrEnum):
    """How a subscriber is connected."""

    STOPPED = "stopped"
    ASKING = "asking"  # the coordinator, for a broker
    CONNECTING = "connecting"
    ENTERING = "entering"  # logged in, not yet welcomed
    SERVING = "serving"
    MOVING = "moving"  # served, and on the way to another broker
    WAITING = "waiting"  # before the next attempt


class AskBroker(Struct, frozen=True):
    """Ask the coordinator which broker this subscriber belongs to; the answer is an event."""


class Open(Struct, frozen=True):
    """Open a connection; the core knows it by its number, and later ones have larger numbers."""

    connection: int
    url: str


class Send(Struct, frozen=True):
    """Send a text message on an open connection."""

    connection: int
    text: bytes


class Close(Struct, frozen=True):
    """Close a connection, after what was sent on it; the core takes no more events of it."""

    connection: int


class StateChanged(Struct, frozen=True):
    """The connection's state is another now; ``url`` is the broker that serves, or is being tried."""

    state: ConnectionState
    url: str | None = None


class Failed(Struct, frozen=True):
    """The core has stopped and does not try again by itself.

    ``unauthorized``: the token is not valid; Start again with another. ``replaced``: another program uses this
    subscriber's name, and whichever starts last is served.
    """

    code: str
    message: str


class Troubled(Struct, frozen=True):
    """A broker or the coordinator said, or did, something for the log; the core goes on by itself."""

    code: str
    message: str


class Slowed(Struct, frozen=True):
    """The connection cannot keep up, ``waiting`` bytes are under way; the broker sends no notes until they are read."""

    waiting: int


class Confirmed(Struct, frozen=True):
    """The subscription called ``ref`` is held. Said again only if the broker has given it another number."""

    ref: int
    held: Held


class Resumed(Struct, frozen=True):
    """The broker holds a subscription that no ``ref`` is known to have; its notes are delivered, too.

    It is from before this program started, or the answer to a request was lost. It is Confirmed when the application
    subscribes with the same channel and parameters.
    """

    held: Held


class RequestRefused(Struct, frozen=True):
    """What was asked under this ``ref`` is not possible, and why. Said once, and what was wanted is forgotten."""

    ref: int
    code: str
    message: str


class Ended(Struct, frozen=True):
    """Nothing more is delivered of a subscription, and what waits of it need not be taken."""

    subscription: int


class Unsubscribed(Struct, frozen=True):
    """The subscription called ``ref`` is given up."""

    ref: int


class Deliver(Struct, frozen=True):
    """A note for the application, of each subscription in order and each once.

    ``recovered``: it was found before the subscriber last came back. It counts as waiting until it is Taken. ``epoch``
    is to be said with that: executions are counted anew when the data cluster has other data than before.
    """

    subscription: int
    note: Note
    recovered: bool = False
    epoch: int = 0


class Missed(Struct, frozen=True):
    """What executions ``first`` to ``last`` found for a subscription is not kept any more. It comes in order with the
    notes, and counts as waiting until ``last`` is Taken."""

    subscription: int
    first: int
    last: int
    epoch: int = 0


class Published(Struct, frozen=True):
    """All records of a Publish have their answer: ``accepted`` are on disk, the others are listed by their index."""

    ref: int
    accepted: int
    refused: list[Refusal]


Action = (
    AskBroker
    | Open
    | Send
    | Close
    | StateChanged
    | Failed
    | Troubled
    | Slowed
    | Confirmed
    | Resumed
    | RequestRefused
    | Ended
    | Unsubscribed
    | Deliver
    | Missed
    | Published
)

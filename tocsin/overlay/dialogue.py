"""What publishers and subscribers say, and are told. A connection is for one subscription, or for one publisher."""

from __future__ import annotations

import msgspec

from tocsin.content.values import Value


class Subscribe(msgspec.Struct, frozen=True, tag=True):
    """A subscriber comes, with a cursor for each head that it has had something of.

    One that migrates says in which session, and how many do in all.
    """

    subscriber: str
    where: str
    cursors: dict[str, int] = {}
    session: str = ""
    migrating: int = 0


class Unsubscribe(msgspec.Struct, frozen=True, tag=True):
    """A subscriber leaves."""


class Introduce(msgspec.Struct, frozen=True, tag=True):
    """A publisher comes."""

    publisher: str


class Publish(msgspec.Struct, frozen=True, tag=True):
    """A publication, with the publisher's own number for it, which rises."""

    sequence: int
    content: dict[str, Value]


class Began(msgspec.Struct, frozen=True, tag=True):
    """From now on a subscriber gets everything of a head that matches, after this offset."""

    head: str
    offset: int


class Note(msgspec.Struct, frozen=True, tag=True):
    """A publication that matches."""

    head: str
    offset: int
    publisher: str
    sequence: int
    content: dict[str, Value]


class Passed(msgspec.Struct, frozen=True, tag=True):
    """Nothing else of a head matches up to this offset."""

    head: str
    offset: int


class Gap(msgspec.Struct, frozen=True, tag=True):
    """What a head published from ``first`` to ``last`` is not kept any more."""

    head: str
    first: int
    last: int


class Move(msgspec.Struct, frozen=True, tag=True):
    """Subscribe at another edge as well, in a session in which so many migrate. ``edge`` is where it is reached."""

    edge: str
    session: str
    migrating: int


class Settle(msgspec.Struct, frozen=True, tag=True):
    """The session is over: whoever is served by the other edge leaves this one after so many seconds, by which what is
    queued here has come; whoever is not stays."""

    session: str
    seconds: float


class Known(msgspec.Struct, frozen=True, tag=True):
    """The last number that a head has stored of a publisher; what is later is to be sent again."""

    sequence: int


class Stored(msgspec.Struct, frozen=True, tag=True):
    """A publication is kept, and on its way."""

    sequence: int


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Why something is not done; ``sequence`` is a publication's number."""

    message: str
    sequence: int | None = None


ToEdge = Subscribe | Unsubscribe
ToHead = Introduce | Publish
ToSubscriber = Began | Note | Passed | Gap | Move | Settle | Refused
ToPublisher = Known | Stored | Refused

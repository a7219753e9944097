"""What publishers and subscribers say, and are told. A connection is for one subscription, or for one publisher."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tocsin.content.values import Value


class HeadCursor(NamedTuple):
    """How far a subscriber is at a head: an offset of its log, as they are numbered under an incarnation of it.

    Without an incarnation it counts for nothing: a cursor of 0 begins with what the head still keeps.
    """

    offset: int
    incarnation: str = ""


class Subscribe(msgspec.Struct, frozen=True, tag=True):
    """A subscriber comes, with a cursor for each head that it has had something of.

    One that migrates says in which session, and how many do in all.
    """

    subscriber: str
    where: str
    cursors: dict[str, HeadCursor] = {}
    session: str = ""
    migrating: int = 0


class Unsubscribe(msgspec.Struct, frozen=True, tag=True):
    """A subscriber leaves."""


class Introduce(msgspec.Struct, frozen=True, tag=True):
    """A publisher comes; ``incarnation`` is that of the head's log under which it has numbered what is not stored."""

    publisher: str
    incarnation: str = ""


class Publish(msgspec.Struct, frozen=True, tag=True):
    """A publication, with the publisher's own number for it, which rises."""

    sequence: int
    content: dict[str, Value]


class Began(msgspec.Struct, frozen=True, tag=True):
    """From now on a subscriber gets everything of a head that matches, after this offset.

    Args:
        incarnation: of the head's log, under which offsets count from now on.
        known: the incarnation of the cursor with which the subscriber came.
        shared: up to which offset the log is the same under both; -1 if they have nothing in common. What was logged
            under ``known`` after that is lost, and whoever was beyond it begins there anew.
    """

    head: str
    offset: int
    incarnation: str = ""
    known: str = ""
    shared: int = 0


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
    """What a head published from ``first`` to ``last`` is not kept any more.

    Without a ``last`` the head has lost its log: what it published from ``first`` on is gone, however much that was,
    and it numbers anew.
    """

    head: str
    first: int
    last: int | None


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
    """The last number that a head has stored of a publisher; what is later is to be sent again.

    ``continued`` is whether the log, now under this incarnation, goes on from the one that the publisher knows. If not,
    nothing that it has numbered is stored here, whatever the numbers say.
    """

    sequence: int
    incarnation: str = ""
    continued: bool = False


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

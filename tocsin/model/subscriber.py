"""The messages between a subscriber and its broker: one JSON object per WebSocket text message, told by its ``type``.

A request carries an ``id`` of the subscriber's choice, and so does its answer. Notifications come unasked. A
subscription is known by the number of its BE subscription, which is the same on every broker; a notification is known
by its subscription and the number of the execution that found it, and both sides order and count by these alone.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw

from tocsin.model.histories import Cursor, Era, Incarnation
from tocsin.model.messages import LARGEST, BeId, ChannelName, Execution, Refusal

VERSION: Final = 1

RequestId = Annotated[int, Meta(ge=0, le=LARGEST, description="Chosen by the subscriber; the answer carries it.")]
Cursors = Annotated[
    dict[BeId, Execution | Cursor],
    Meta(
        description="Per subscription, the last execution whose notification the application has had: its number, or "
        "its number and the incarnation under which it counts."
    ),
]


class SubscriberMessage(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of all messages."""


class Login(SubscriberMessage, frozen=True, tag="login"):
    """The first message of a connection, which must come soon.

    ``cursors`` is what this subscriber's program itself knows; where it says nothing, what the broker was told counts.
    """

    token: str
    version: int = VERSION
    cursors: Cursors = {}


class Subscribe(SubscriberMessage, frozen=True, tag="subscribe"):
    """Asks for a subscription. With ``live``, what comes while the subscriber is away is not delivered later.

    Whoever had it already says under which ``incarnation``: should its channel have been dropped since, it is refused
    as ``gone``, also if there is another channel of that name.
    """

    id: RequestId
    channel: ChannelName
    parameters: dict[str, Any]
    live: bool = False
    incarnation: Incarnation = ""


class Unsubscribe(SubscriberMessage, frozen=True, tag="unsubscribe"):
    """Gives a subscription up."""

    id: RequestId
    subscription: BeId


class Acknowledge(SubscriberMessage, frozen=True, tag="ack"):
    """The application has had everything of these subscriptions up to these executions."""

    cursors: Cursors


class Publish(SubscriberMessage, frozen=True, tag="publish"):
    """Records for a feed; they travel on in batches with those of others."""

    id: RequestId
    feed: str
    records: list[Raw]


class Logout(SubscriberMessage, frozen=True, tag="logout"):
    """Ends the connection. The subscriptions stay."""


class Held(msgspec.Struct, frozen=True):
    """A subscription as its broker holds it: what is after ``cursor`` is yet to come.

    Channel and parameters are as the data cluster spells them. ``incarnation`` is the one under which the cursor, and
    the executions of the notifications that follow, are counted.
    """

    subscription: BeId
    channel: str
    parameters: dict[str, Any]
    cursor: Execution
    live: bool = False
    incarnation: Incarnation = ""


class Welcome(SubscriberMessage, frozen=True, tag="welcome"):
    """The answer to :class:`Login`.

    ``newest`` is, per channel of the subscriptions, the last execution the broker knows of: what it or an earlier one
    has found was found before this login. ``histories`` has the history of each channel whose incarnation is another
    than the login's cursors have, from that one on. Many subscriptions come in parts, all but the last with ``more``,
    and the rest is in the last.
    """

    subscriber: str
    broker: str
    version: int
    subscriptions: list[Held]
    newest: dict[str, Execution] = {}
    histories: dict[str, list[Era]] = {}
    more: bool = False


class Renewed(SubscriberMessage, frozen=True, tag="renewed"):
    """A subscription goes on as ``held``: the data cluster was started again, perhaps with other data.

    ``was`` is the number it had. ``history`` is that of its channel, from the incarnation of before on. What is after
    the cursor of ``held`` follows.
    """

    was: BeId
    held: Held
    history: list[Era] = []


class Ended(SubscriberMessage, frozen=True, tag="ended"):
    """A subscription is no more, and why: its channel was dropped, say. Nothing of it comes after this."""

    subscription: BeId
    code: str
    message: str


class Subscribed(SubscriberMessage, frozen=True, tag="subscribed"):
    """The answer to :class:`Subscribe`, also if it was held before.

    ``history`` is that of its channel, if the login had a cursor for it under another incarnation.
    """

    id: int
    held: Held
    history: list[Era] = []


class Unsubscribed(SubscriberMessage, frozen=True, tag="unsubscribed"):
    """The answer to :class:`Unsubscribe`; nothing of it comes any more."""

    id: int
    subscription: int


class Published(SubscriberMessage, frozen=True, tag="published"):
    """The answer to :class:`Publish`: what is on disk in the data cluster, and what was refused.

    The first refusals are listed; ``unlisted`` counts the others.
    """

    id: int
    accepted: int
    refused: list[Refusal] = []
    unlisted: int = 0


class Note(msgspec.Struct, frozen=True):
    """A notification: what execution ``e`` found for subscription ``s``, a JSON array of rows."""

    s: BeId
    e: Execution
    payload: Raw


class Notes(SubscriberMessage, frozen=True, tag="notes"):
    """Notifications, of each subscription in the order of executions."""

    notes: list[Note]


class Gap(SubscriberMessage, frozen=True, tag="gap"):
    """What executions ``first`` to ``last`` found for a subscription is not kept any more, and does not come."""

    subscription: BeId
    first: Execution
    last: Execution


class Moved(SubscriberMessage, frozen=True, tag="moved"):
    """Another broker is ready for this subscriber. Log in there, then close here; until then all goes on here."""

    url: str


class Slow(SubscriberMessage, frozen=True, tag="slow"):
    """The connection cannot keep up: nothing more is sent until it has taken what waits, and then what was missed."""

    waiting: int


class Error(SubscriberMessage, frozen=True, tag="error", omit_defaults=True):
    """A message could not be acted on. ``id`` is that of the request, if it had a readable one.

    With ``subscription``, nothing was asked: that subscription is not served, or not with everything.
    """

    code: str
    message: str
    id: int | None = None
    retry_after: float | None = None
    subscription: int | None = None


Request = Login | Subscribe | Unsubscribe | Acknowledge | Publish | Logout
Answer = Welcome | Subscribed | Unsubscribed | Published | Notes | Gap | Renewed | Ended | Moved | Slow | Error


def is_same(one: Held, other: Held) -> bool:
    """Whether two are the same subscription, whatever their numbers: a channel's name is one in any spelling."""
    return one.parameters == other.parameters and one.channel.casefold() == other.channel.casefold()


class Code:
    """Why a broker closes a connection, beyond the codes of WebSocket itself (1001 going away, 1009 too large)."""

    UNREADABLE: Final = 4400  # a message that is none, or out of turn
    UNAUTHORIZED: Final = 4401  # no token, or one that is not valid
    ELSEWHERE: Final = 4404  # the subscriber belongs to another broker: ask the coordinator
    OUTDATED: Final = 4405  # the broker does not hold what it said any more: log in again
    LATE: Final = 4408  # no login in time
    REPLACED: Final = 4409  # the same subscriber has connected again
    FLOOD: Final = 4429  # too many messages in too short a time
    LOGOUT: Final = 4000  # as asked

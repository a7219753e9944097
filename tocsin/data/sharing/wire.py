"""The nodes' socket: what the head and a processing node send each other, for all feeds that are shared.

One JSON object each, told by its ``type``. What is ``said`` is for the cores of one feed
(:mod:`tocsin.slices.messages`); the rest is about which feeds there are.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from tocsin.data.nodes.channels import NodeChannel
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.slices.messages import FromHead, FromNode

REASON: Final = 1000
"""The most characters in which a node says why it cannot do something."""


class NodeWelcome(msgspec.Struct, frozen=True, tag="welcome"):
    """The first message: which feeds there are. Whatever else a node has had is no more."""

    node: str
    feeds: list[str]


class FeedBegun(msgspec.Struct, frozen=True, tag="feed"):
    """A feed whose slices are shared from now on. A node that wants some of them says hello.

    The channels that are matched with it follow; of those told before, none is left.

    Args:
        incarnation: by it a node knows whether what it has learnt of the dataset still holds.
        batch_seconds: from the beginning of a batch to that of the next, at least.
    """

    shared: SharedFeed
    incarnation: str
    batch_seconds: float


class FeedChannel(msgspec.Struct, frozen=True, tag="channel"):
    """A channel that is matched with what is read of a feed; in the place of what was told of it before."""

    feed: str
    incarnation: str
    channel: NodeChannel


class FeedChannelEnded(msgspec.Struct, frozen=True, tag="channel-ended"):
    """A channel that is matched no more."""

    feed: str
    incarnation: str
    channel: str


class FeedEnded(msgspec.Struct, frozen=True, tag="ended"):
    """A feed that is shared no more: it was dropped, or is made anew."""

    feed: str


class ToNode(msgspec.Struct, frozen=True, tag="said"):
    """What the head of a feed says. It is one of an incarnation, as in :class:`ToHead`."""

    feed: str
    incarnation: str
    message: FromHead


class ToHead(msgspec.Struct, frozen=True, tag="said"):
    """What a node says to the head of a feed. What is for another incarnation comes too late, and is not heard."""

    feed: str
    incarnation: str
    message: FromNode


class FeedDeclined(msgspec.Struct, frozen=True, tag="declined"):
    """A node cannot process a feed, and wants none of its slices; should that change, it says hello.

    What is too long to be a reason is refused.
    """

    feed: str
    incarnation: str
    reason: Annotated[str, msgspec.Meta(max_length=REASON)]


class ConnectionRefused(msgspec.Struct, frozen=True, tag="error"):
    """Why the connection is closed; the last message."""

    code: str
    message: str


FromWorker = ToHead | FeedDeclined
ForNode = NodeWelcome | FeedBegun | FeedChannel | FeedChannelEnded | FeedEnded | ToNode | ConnectionRefused

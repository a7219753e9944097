"""What brokers tell each other on their links.

Control messages overtake publications, marks, and what was missed of these (``Found``); apart from that a link keeps
the order.
"""

from __future__ import annotations

import msgspec

from tocsin.content.values import Value
from tocsin.overlay.load import BrokerLoad, Metrics, Resource

HEADS = "*"
"""The address of all cluster-heads, which is no name that a broker could have."""


class LinkMessage(msgspec.Struct, frozen=True, tag=True):
    """Base of all that goes over a link."""


class Routed(LinkMessage, frozen=True, omit_defaults=True):
    """A publication: the head it was published to, its offset there, and the publisher's own number for it.

    On its way it has the ``incarnation`` under which the offset counts. It may be overtaken by all that is said of the
    next one, when its head has lost its log.
    """

    head: str
    offset: int
    publisher: str
    sequence: int
    content: dict[str, Value]
    incarnation: str = ""


class Mark(LinkMessage, frozen=True):
    """All of a head's publications up to an offset have gone this way, as far as they are wanted."""

    head: str
    offset: int
    incarnation: str = ""


class Sync(LinkMessage, frozen=True):
    """The first message on a link: everything that is wanted from the other broker."""

    publications: list[str]
    control: list[str]


class Change(LinkMessage, frozen=True):
    """What is wanted from now on, and what no more."""

    control: bool
    add: list[str]
    drop: list[str]


class Interrupted(LinkMessage, frozen=True):
    """Nothing comes from these heads any more, until fetched again."""

    heads: list[str]


class Restored(LinkMessage, frozen=True):
    """There is a way to some heads again, or for the first time. ``passed`` are the heads that this has come over:
    whoever finds itself among them is in a circle of heads."""

    passed: list[str] = []


class Fetch(msgspec.Struct, frozen=True, tag=True):
    """An edge asks all heads, or one, for what it has missed; they answer with Found.

    Args:
        id: what the answers are known by; it is not used again, also if the edge dies.
        filters: what must match.
        cursors: after which offset, by head and by the incarnation under which it counts, the lowest of each; a head
            that is not named says where it is.
        settled: heads that need not answer.
    """

    id: str
    filters: list[str]
    cursors: dict[str, dict[str, int]]
    settled: list[str]


class Found(msgspec.Struct, frozen=True, tag=True):
    """A head's answer: all that matches up to ``upto``. There is more to be fetched, unless that is its present offset,
    ``last``. Nothing before ``oldest`` is kept.

    ``shared`` says up to which offset its log is the same under each incarnation that was asked for as under the
    present one: -1 if they have nothing in common.
    """

    id: str
    head: str
    incarnation: str
    shared: dict[str, int]
    oldest: int
    upto: int
    last: int
    publications: list[Routed]


class LocalLoad(msgspec.Struct, frozen=True, tag=True):
    """An edge's load message (PIE), for the edges of its cluster: ``state`` is an Availability, ``balanced`` are the
    brokers that differ from it by no trigger, ``url`` is where subscribers reach it if not by its name. ``cpu`` and
    ``memory`` are ratios, by which its head knows that nobody in the cluster can help."""

    broker: str
    cluster: str
    metrics: Metrics
    state: str
    balanced: list[str]
    url: str = ""
    cpu: float = 0.0
    memory: float = 0.0

    @property
    def ratios(self) -> dict[Resource, float]:
        """What is compared with the overload thresholds."""
        return {
            Resource.INPUT: self.metrics.input,
            Resource.OUTPUT: self.metrics.output,
            Resource.CPU: self.cpu,
            Resource.MEMORY: self.memory,
        }

    @property
    def match_rate(self) -> float:
        """The most publications per second that it can match."""
        return 1 / self.metrics.delay


class ClusterView(msgspec.Struct, frozen=True, tag=True):
    """A head tells its edges whose load messages they are to hear besides their own cluster's."""

    clusters: list[str]


class SessionRequest(msgspec.Struct, frozen=True, tag=True):
    """A broker, or a cluster, with more load asks for a session; ``id`` is not used again."""

    id: str


class SessionAccept(msgspec.Struct, frozen=True, tag=True):
    """An edge accepts: its load, and its covering set."""

    id: str
    load: BrokerLoad
    covering: list[str]


class SessionReject(msgspec.Struct, frozen=True, tag=True):
    """It does not, as it is in another state than OK."""

    id: str
    state: str


class SessionMigrating(msgspec.Struct, frozen=True, tag=True):
    """The offloader says whom it sends to the acceptor, which waits for these: subscribers are not asked."""

    id: str
    subscribers: list[str]


class SessionDone(msgspec.Struct, frozen=True, tag=True):
    """All who migrate have come to the acceptor, or the time is up for those who are ``missing``."""

    id: str
    missing: list[str] = []


class SessionEnd(msgspec.Struct, frozen=True, tag=True):
    """Nobody migrates in this session, or no more: it is over. ``vain``, if the offloader has found nobody to send;
    of clusters, if their edges are as even as they can be, and nothing would come of another session."""

    id: str
    vain: bool = False


class ClusterAccept(msgspec.Struct, frozen=True, tag=True):
    """A head accepts for its cluster."""

    id: str


class ClusterAlive(msgspec.Struct, frozen=True, tag=True):
    """A head says to the other one that their session goes on."""

    id: str


class ClusterLoad(LinkMessage, frozen=True):
    """A cluster's load message, with the averages of its edges: for the heads next to it, and ``hops`` further where
    a head has no edges."""

    cluster: str
    metrics: Metrics
    state: str
    hops: int


SessionBody = (
    SessionRequest
    | SessionAccept
    | SessionReject
    | SessionMigrating
    | SessionDone
    | SessionEnd
    | ClusterAccept
    | ClusterAlive
)
Body = Fetch | Found | LocalLoad | ClusterView | SessionBody


class Control(LinkMessage, frozen=True):
    """A control publication: attributes by which it is routed as others are, and what it says."""

    attributes: dict[str, str]
    sender: str
    body: Body


FromEdge = Sync | Change | Control
"""What an edge says to its head; of control messages those in its own name, with one of these bodies."""
EdgeBody = (
    Fetch | LocalLoad | SessionRequest | SessionAccept | SessionReject | SessionMigrating | SessionDone | SessionEnd
)
FromLink = Routed | Mark | Sync | Change | Interrupted | Restored | ClusterLoad | Control

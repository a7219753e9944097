"""The bodies of the data cluster's REST calls, and what the protocols share: numbers, names, records and results.

Servers and clients share these structs, so a field is named, typed and bounded in one place. A payload is the JSON text
that Spark made of a result; it is carried as :class:`msgspec.Raw` and never parsed on its way.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw

from tocsin.model.terms import Groups, SubscriberName

LARGEST = 2**63 - 1
LISTED: Final = 1000
"""So many refusals of one publisher's records are listed, each with its reason, which takes longer to find than a good
record to take; the others are counted."""
SHARES = "application/vnd.tocsin.shares+json"
"""What a broker passes on for its subscribers: an array of :class:`Share`."""

BeId = Annotated[int, Meta(ge=0, le=LARGEST, description="The number of a BE subscription.")]
Execution = Annotated[int, Meta(ge=0, le=LARGEST, description="The number of an execution of a channel, from 1.")]
BrokerName = Annotated[
    str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$", description="A broker's name.")
]
BrokerUrl = Annotated[
    str,
    Meta(max_length=2048, pattern=r"^(http|https|ws|wss)://[^\s]+$", description="Where subscribers reach the broker."),
]
ChannelName = Annotated[str, Meta(min_length=1, max_length=128, description="The name of a channel.")]
Parameters = Annotated[
    list[dict[str, Any]], Meta(description="One object per subscription: the channel's parameters with their values.")
]
Ids = Annotated[list[BeId], Meta(description="Numbers of BE subscriptions.")]

Action = Literal["created", "unchanged", "changed", "replaced", "dropped", "loaded", "shown"]
Status = Literal["ok", "degraded", "starting", "standby"]


class StatementOutcome(msgspec.Struct, frozen=True):
    """What a statement did. ``changed`` means that it exists with another definition, and nothing was done.

    ``statement`` is a short title such as ``channel EmergenciesOfType``; ``rows`` is what SHOW and DESCRIBE found.
    """

    statement: str
    action: Action
    detail: str = ""
    rows: list[dict[str, Any]] = msgspec.field(default_factory=list)


class Share(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records of one subscriber, as its broker passes them on: the name and groups are those of the token."""

    subscriber: SubscriberName
    records: list[Raw]
    groups: Groups = ()


class Refusal(msgspec.Struct, frozen=True):
    """Why the record at ``index`` of a request, counted from 0, was not accepted."""

    index: int
    reason: str


class Published(msgspec.Struct, frozen=True):
    """How many records of a request are now on disk, and which were not accepted.

    The first refusals are listed; ``unlisted`` counts the others.
    """

    accepted: int
    refused: list[Refusal] = msgspec.field(default_factory=list)
    unlisted: int = 0


class PublishedShares(msgspec.Struct, frozen=True):
    """The same of shares: the index of a record counts through all of them.

    ``denied`` says of each share whose subscriber may not publish here why not, by the number of the share, from 0; its
    records are not among the refused. Of each share the first refusals are listed; ``unlisted`` counts the others, by
    the number of the share.
    """

    accepted: int
    refused: list[Refusal] = msgspec.field(default_factory=list)
    denied: dict[int, str] = msgspec.field(default_factory=dict)
    unlisted: dict[int, int] = msgspec.field(default_factory=dict)


class Result(msgspec.Struct, frozen=True):
    """What one execution found for one BE subscription: ``payload`` is a JSON array of ``rows`` rows."""

    execution: int
    be: int
    rows: int
    bytes: int
    payload: Raw


class Pulled(msgspec.Struct, frozen=True):
    """A part of what was pulled; ``more`` if another follows, and with the last all is told up to ``upto``.

    What executions before ``oldest`` found is not kept any more; where one of the BE subscriptions had something among
    it from ``first`` on, ``gone`` says the last such execution, before any results.
    """

    results: list[Result]
    more: bool
    upto: int
    oldest: int
    gone: dict[int, int]


class FeedHealth(msgspec.Struct, frozen=True):
    """A feed: what is accepted but not yet in its dataset, for how long the oldest of it has waited, and how many
    records each slice was given since the start."""

    name: str
    backlog_bytes: int = 0
    lag_seconds: float = 0.0
    error: str = ""
    slice_records: list[int] = msgspec.field(default_factory=list)


class ChannelHealth(msgspec.Struct, frozen=True):
    """A channel: what it is doing, the number of its last execution, and why that failed if it did."""

    name: str
    state: str
    execution: int = 0
    error: str = ""


class Health(msgspec.Struct, frozen=True):
    """How the data cluster is. ``problems`` are sentences for an operator, empty when all is well."""

    status: Status
    problems: list[str] = msgspec.field(default_factory=list)
    uptime_seconds: float = 0.0
    spark: bool = True
    feeds: list[FeedHealth] = msgspec.field(default_factory=list)
    channels: list[ChannelHealth] = msgspec.field(default_factory=list)
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class BareHealth(msgspec.Struct, frozen=True):
    """What anyone may know."""

    status: Status


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement of an application file."""

    statement: Annotated[str, Meta(description="CREATE ...; the semicolon may be left out.")]


class Applied(msgspec.Struct, frozen=True):
    """What each statement did, in order."""

    outcomes: list[StatementOutcome]


class Loaded(msgspec.Struct, frozen=True):
    """How many rows a loaded dataset has, and whether it had them already."""

    rows: int
    unchanged: bool = False


class Listed(msgspec.Struct, frozen=True):
    """The first of ``total`` things, as many as were asked for."""

    items: list[dict[str, Any]]
    total: int


class BrokerAddress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker, as it makes itself known."""

    name: BrokerName
    url: BrokerUrl


class Subscribe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker wants these subscriptions to a channel."""

    broker: BrokerName
    channel: ChannelName
    parameters: Parameters


class Subscribed(msgspec.Struct, frozen=True):
    """The BE subscriptions, in the order of the parameters; equal parameters have one number."""

    ids: list[int]


class Unsubscribe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker no longer wants these subscriptions."""

    broker: BrokerName
    ids: Ids


class Unsubscribed(msgspec.Struct, frozen=True):
    """How many of them the broker held."""

    detached: int


class ResultsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Results of a channel's executions ``first`` to ``last``; without ``ids``, those of every subscription."""

    channel: ChannelName
    first: Execution
    last: Execution
    ids: Ids | None = None


class ResultsFound(msgspec.Struct, frozen=True):
    """Results ordered by execution, then by BE subscription: all up to execution ``upto``; for more, ask from there on.

    What executions before ``oldest`` found is not kept any more.
    """

    results: list[Result]
    upto: int
    oldest: int


class RatesWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Asks for the data rates of these subscriptions."""

    ids: Ids


class RatesFound(msgspec.Struct, frozen=True):
    """Bytes per second, in the order asked for."""

    rates: list[float]


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a call was refused. ``code`` is for programs, ``message`` for people.

    A refused statement has its line and column; ``retry_after`` is in seconds; ``refused`` are the first records of a
    publication none of which was accepted, and ``unlisted`` counts the others; ``reference`` finds a fault in the
    server's log; ``outcomes`` are what the statements did that were carried out before one failed.
    """

    code: str
    message: str
    line: int | None = None
    column: int | None = None
    retry_after: float | None = None
    refused: list[Refusal] | None = None
    unlisted: int = 0
    reference: str | None = None
    outcomes: list[StatementOutcome] | None = None


class Failure(msgspec.Struct, frozen=True):
    """The body of every answer that is not a success."""

    error: ProblemDetails


def read_problem(body: bytes | bytearray | None) -> ProblemDetails | None:
    """What the body of an answer names as wrong; None if it is none of ours, whatever it is."""
    try:
        return msgspec.json.decode(body or b"", type=Failure).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

"""The messages of the control socket between a broker and the data cluster: one JSON object each, told by its ``type``.

A request carries an ``id`` of the broker's choice, and so does its answer. Notices come unasked, and one about a new
subscription may come before the answer that gives its number.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tocsin.model.histories import Cursor, Era, Incarnation
from tocsin.model.histories import incarnation as newest
from tocsin.model.messages import LARGEST, ChannelName, Execution, Ids, Parameters, ProblemDetails, Result
from tocsin.model.terms import Groups, SubscriberName, Terms

RequestId = Annotated[int, Meta(ge=0, le=LARGEST, description="Chosen by the broker; the answer carries it.")]


class ControlMessage(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of all messages."""


class Token(ControlMessage, frozen=True, tag="token"):
    """The first message of a broker that could not send an ``Authorization`` header."""

    token: str


class Attach(ControlMessage, frozen=True, tag="attach"):
    """Asks for subscriptions to a channel, one per object of parameters.

    ``subscriber`` and ``groups`` are who wants them, as the broker has it from their token: whether they may is judged
    by that, and parameters that are bound are filled in. Without, the broker asks as itself for what it holds already.
    ``known`` is an execution of the channel that it has heard of: by that the data cluster may learn that it has other
    data than before.
    """

    id: RequestId
    channel: ChannelName
    parameters: Parameters
    subscriber: SubscriberName | None = None
    groups: Groups = ()
    known: Cursor | None = None


class Detach(ControlMessage, frozen=True, tag="detach"):
    """Gives subscriptions up."""

    id: RequestId
    bes: Ids


class Pull(ControlMessage, frozen=True, tag="pull"):
    """Asks for the results of executions ``first`` to ``last``; without ``bes``, of every subscription of the broker.

    With ``most``, no further execution is begun once the answer has so many bytes.
    """

    id: RequestId
    channel: ChannelName
    first: Execution
    last: Execution
    bes: Ids | None = None
    most: Annotated[int, Meta(ge=1, le=LARGEST)] | None = None


class Ping(ControlMessage, frozen=True, tag="ping"):
    """Asks for a :class:`Pong`."""

    id: RequestId


class Welcome(ControlMessage, frozen=True, tag="welcome"):
    """The first message to a broker: what is executed from now on, it is told of."""

    broker: str


class Attached(ControlMessage, frozen=True, tag="attached"):
    """The answer to :class:`Attach`: BE subscriptions in the order of the parameters.

    What the channel's executions after ``execution`` find is for whoever attached. ``terms`` say who may use the
    channel, and which parameters are always the subscriber's name. ``channel`` is its name as it was created, and
    ``parameters`` are in their canonical form, with those that are bound: these alone are to be stored and compared.
    ``history`` ends with the incarnation under which executions are counted now. ``rates`` are λ of each, in bytes per
    second, None where it is not known yet; they stand for ``seconds``, and fade if nothing is heard by then.
    """

    id: int
    bes: list[int]
    execution: int = 0
    terms: Terms = Terms()
    channel: str = ""
    parameters: list[dict[str, Any]] = []
    history: list[Era] = []
    rates: list[float | None] = []
    seconds: float = 0.0

    @property
    def incarnation(self) -> str:
        """The present one."""
        return newest(self.history)


class Detached(ControlMessage, frozen=True, tag="detached"):
    """The answer to :class:`Detach`: how many of them the broker held."""

    id: int
    count: int


class Results(ControlMessage, frozen=True, tag="results"):
    """The answer to :class:`Pull`, ordered by execution, then by BE subscription; in parts, all but the last ``more``.

    With the last part all is told up to execution ``upto``, perhaps less than was asked for; None: all of that. What
    executions before ``oldest`` found is not kept any more. Where one of the BE subscriptions asked for had something
    among it, from ``first`` on, ``gone`` says the last such execution, before any results.
    """

    id: int
    results: list[Result]
    incarnation: Incarnation = ""
    more: bool = False
    upto: int | None = None
    oldest: int = 1
    gone: dict[int, int] = {}


class Pong(ControlMessage, frozen=True, tag="pong"):
    """The answer to :class:`Ping`."""

    id: int


class Error(ControlMessage, frozen=True, tag="error", omit_defaults=True):
    """A message could not be acted on. ``id`` is that of the request, if it had a readable one."""

    code: str
    message: str
    id: int | None = None
    retry_after: float | None = None
    reference: str | None = None

    @classmethod
    def of(cls, problem: ProblemDetails, id: int | None = None) -> Error:
        """The same problem as a REST call would have been told."""
        return cls(problem.code, problem.message, id, problem.retry_after, problem.reference)


class Executed(ControlMessage, frozen=True, tag="executed"):
    """A channel has been executed, and found something for these BE subscriptions of the broker.

    ``rates`` are λ of each, in bytes per second. They stand for ``seconds``, the time since the execution before, and
    fade if nothing is heard by then.
    """

    channel: str
    execution: int
    bes: list[int]
    incarnation: Incarnation = ""
    rates: list[float | None] = []
    seconds: float = 0.0


class Behind(ControlMessage, frozen=True, tag="behind"):
    """In place of :class:`Executed` for a broker that reads too slowly: pull executions ``first`` to ``last``.

    Of rates it says nothing: what was said last goes on to count.
    """

    channel: str
    first: int
    last: int
    incarnation: Incarnation = ""


class Dropped(ControlMessage, frozen=True, tag="dropped"):
    """A channel is gone with all its subscriptions. One of the same name is another, under another incarnation."""

    channel: str
    incarnation: Incarnation = ""


class Changed(ControlMessage, frozen=True, tag="changed"):
    """A channel was replaced by one with other terms, by which whoever subscribes is judged from now on."""

    channel: str
    terms: Terms = Terms()


class Failing(ControlMessage, frozen=True, tag="failing"):
    """A channel cannot be executed with these BE subscriptions of the broker, or not on all records, and why."""

    channel: str
    bes: list[int]
    message: str


Request = Attach | Detach | Pull | Ping
Notice = Executed | Behind | Dropped | Changed | Failing

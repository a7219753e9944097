"""What a broker holds: channels, their BE subscriptions, the subscribers staying here and what each wants.

Sets are dictionaries without values here: they keep their order, so that a schedule replays exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec

from tocsin.broker.accounting import DataRate
from tocsin.broker.pace import SubscriberPace
from tocsin.coordinator.tokens import Claims
from tocsin.model.histories import Cursor, Era, incarnation
from tocsin.model.subscriber import Held
from tocsin.model.terms import Asker, Terms

_spell = msgspec.json.Encoder(order="deterministic").encode


class Bearer(Asker, frozen=True):
    """Who has logged in, by a token: its id, the id of its key, its series, how long it is still good, and of which
    registration of the name it is."""

    token: str = ""
    key: str = ""
    series: int = 0
    seconds: float = inf
    registration: int = 0

    @classmethod
    def of(cls, claims: Claims, now: float) -> Bearer:
        """Whoever came with a token of these claims, at this time."""
        seconds = claims.expires - now
        return cls(claims.name, claims.groups, claims.id, claims.key, claims.series, seconds, claims.registration)


@dataclass(slots=True, eq=False)
class HeldChannel:
    """A channel that somebody here wants something of.

    Its name is as the data cluster spells it, and all numbers count under the last incarnation of its ``history``.
    ``terms`` say who may use it, once the data cluster has told. ``seen`` is the last execution heard of. Everything up
    to ``level`` has been pulled for every BE subscription and given to those who are current. ``pulling`` is the last
    execution of the pull under way, 0 without one, and ``pulls`` how many there were: only the last one's answer
    counts. What was found before ``oldest`` is not kept any more. Of those ``behind``, whoever has waited longest for a
    pull comes first; one for them is under way as ``catching_up``. It was ``executed`` last, as far as was heard,
    ``interval`` seconds after the time before. It is ``doubted`` while a subscription of it may be in doubt.
    """

    name: str
    terms: Terms | None = None
    history: list[Era] = field(default_factory=list)
    seen: int = 0
    level: int = 0
    pulling: int = 0
    pulls: int = 0
    backends: dict[int, BackendSubscription] = field(default_factory=dict)
    wanted: dict[BackendSubscription, None] = field(default_factory=dict)
    behind: dict[FrontendSubscription, None] = field(default_factory=dict)
    catching_up: CatchupPull | None = None
    oldest: int = 1
    executed: float = -inf
    interval: float = 0.0
    doubted: bool = False

    @property
    def incarnation(self) -> str:
        """Under which its executions are counted."""
        return incarnation(self.history)

    def cursor(self, execution: int) -> Cursor:
        """An execution of the present incarnation, as others are told of it."""
        return Cursor(execution, incarnation(self.history))


@dataclass(slots=True, eq=False)
class CatchupPull:
    """A pull for those behind, of executions ``first`` to ``last`` of an incarnation, begun for ``head``.

    ``backends`` are by the numbers that were asked for. ``takers`` are those who have had all of it so far, by the
    same; they are known with the first part.
    """

    incarnation: str
    head: FrontendSubscription
    backends: dict[int, BackendSubscription]
    first: int
    last: int
    takers: dict[int, dict[FrontendSubscription, None]] | None = None


@dataclass(slots=True, eq=False)
class BackendSubscription:
    """A BE subscription, held as long as it has subscriptions or is claimed by requests under way.

    Of what was executed up to ``attached`` the broker hears nothing. Whatever is pulled next goes to the connections of
    those who are ``current``, and of those who are ``ahead`` once it is later than what they have had. One that is
    ``missing`` was held before, but the data cluster has no such channel at present. One that is ``idle`` is held by
    nobody who is there, and nothing is pulled for it. One that has ``ended`` is held no more, and one with an ``heir``
    has turned out to be the same as that.
    """

    be: int
    channel: HeldChannel
    parameters: dict[str, Any]
    rate: DataRate
    attached: int
    keys: list[bytes] = field(default_factory=list)
    subscriptions: dict[FrontendSubscription, None] = field(default_factory=dict)
    current: dict[FrontendSubscription, Session] = field(default_factory=dict)
    ahead: dict[FrontendSubscription, Session] = field(default_factory=dict)
    claims: int = 0
    missing: bool = False
    idle: bool = False
    ended: str = ""
    heir: BackendSubscription | None = None

    @property
    def present(self) -> BackendSubscription:
        """What this BE subscription is now."""
        return self.heir.present if self.heir else self

    def data_rate(self, now: float) -> float:
        """λ, in bytes per second."""
        return self.rate.at(now, self.channel.executed, self.channel.interval)

    @property
    def level(self) -> int:
        """Up to here there may be something that was not given to those who are behind."""
        return max(self.channel.level, self.attached)

    @property
    def horizon(self) -> int:
        """Whoever has everything up to here misses nothing of what is pulled next."""
        return max(self.channel.level, self.channel.pulling, self.attached)


@dataclass(slots=True, eq=False)
class FrontendSubscription:
    """An FE subscription: everything up to ``sent`` went to the connection, unless it is current: then more did.

    With a ``doubt``, that is how far the subscriber is, counted under an incarnation that this broker has not heard of:
    nothing is given until it has asked the data cluster.
    """

    stay: Stay
    backend: BackendSubscription
    live: bool
    acknowledged: int
    sent: int = 0
    doubt: Cursor | None = None

    @property
    def cursor(self) -> Cursor:
        """How far the subscriber is known to be."""
        return self.doubt or self.backend.channel.cursor(self.acknowledged)

    @property
    def newest(self) -> int:
        """The last execution that can have been acknowledged: beyond it no cursor can be meant."""
        return max(self.backend.channel.seen, self.backend.attached, self.acknowledged)

    @property
    def held(self) -> Held:
        """As subscriber and coordinator know it."""
        backend, cursor = self.backend, self.cursor
        return Held(
            backend.be, backend.channel.name, backend.parameters, cursor.execution, self.live, cursor.incarnation
        )


@dataclass(slots=True, eq=False)
class Stay:
    """A subscriber on this broker: prepared, and then served from its first login on.

    ``renumbered`` are numbers that its subscriptions had before, and which they have now. ``told`` is how far each was
    when the coordinator last spoke of it: one that is asked for here at that time goes on from there. It is for tokens
    of one ``registration`` of the name alone. Without a session it is ``expected`` to have one until that time. Its
    ``pace`` is there from its first login on, and the same for all its sessions.
    """

    subscriber: str
    number: int
    arrived: bool = False
    subscriptions: dict[int, FrontendSubscription] = field(default_factory=dict)
    renumbered: dict[int, int] = field(default_factory=dict)
    told: dict[int, Cursor] = field(default_factory=dict)
    session: Session | None = None
    registration: int = 0
    expected: float = 0.0
    pace: SubscriberPace | None = None

    @property
    def numbers(self) -> set[int]:
        """Those of its subscriptions, also those they had before."""
        return {*self.subscriptions, *(was for was, now in self.renumbered.items() if now in self.subscriptions)}

    def renumber(self, was: int, be: int) -> None:
        """A subscription has another number: perhaps one that it, or another, had before."""
        known = {number: be if now == was else now for number, now in self.renumbered.items()}
        self.renumbered = {number: now for number, now in known.items() if number != be} | {was: be}


@dataclass(slots=True, eq=False)
class Session:
    """A connection; ``waiting`` bytes were sent and not yet taken, and ``notes`` are about to be. It speaks at its
    ``pace``.

    ``bearer`` is who has logged in, once somebody has.
    ``noted`` bytes of these are of what it had missed, which is bounded as it is collected. ``unread`` bytes of answers
    were added to what waits since it is slow. ``cursors`` are those of its login that are of subscriptions not held:
    should they be made (again), they go on from there.
    """

    id: int
    pace: SubscriberPace
    bearer: Bearer | None = None
    stay: Stay | None = None
    waiting: int = 0
    noted: int = 0
    unread: int = 0
    slow: bool = False
    closed: bool = False
    cursors: dict[int, Cursor] = field(default_factory=dict)
    notes: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Holdings:
    """All of it. Those BE subscriptions that are ``active`` have a data rate, as far as they are still held.

    ``setbacks`` are sentences for operators, by channel: that the data cluster has other data than before.
    """

    channels: dict[str, HeldChannel] = field(default_factory=dict)
    backends: dict[int, BackendSubscription] = field(default_factory=dict)
    active: dict[int, BackendSubscription] = field(default_factory=dict)
    keys: dict[bytes, BackendSubscription] = field(default_factory=dict)
    stays: dict[str, Stay] = field(default_factory=dict)
    setbacks: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """The channels of which something is held, and which the data cluster does not know at present."""
        backends = (backend for backend in self.backends.values() if backend.missing)
        return sorted({backend.channel.name for backend in backends})

    def channel(self, name: str) -> HeldChannel:
        """The channel of this name, known from now on."""
        return self.channels.setdefault(name, HeldChannel(name))

    def hear_rates(self, now: float, bes: Sequence[int], rates: Sequence[float | None], seconds: float) -> None:
        """The data cluster says λ of BE subscriptions, for so many seconds. It may not know, or not say: then nothing
        changes."""
        for be, rate in zip(bes, rates, strict=False):
            if rate is not None and (backend := self.backends.get(be)):
                backend.rate.hear(now, rate, seconds)
                self.active[be] = backend


def key(channel: str, parameters: dict[str, Any]) -> bytes:
    """The same for the same words; the data cluster may know more ways to say the same."""
    return _spell((channel, parameters))

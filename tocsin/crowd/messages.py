"""What a process of people and whoever started it say to each other: one JSON object per line, told by its ``type``.

Times are those of the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from tocsin.crowd.delays import Delays


class CrowdMessage(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of all messages."""


class Begin(CrowdMessage, frozen=True, tag="begin"):
    """Live: second 0 of the world is at this time."""

    at: float


class Acknowledged(CrowdMessage, frozen=True, tag="acknowledged"):
    """These reports were acknowledged at this time: whoever is told of one waited since then."""

    reports: list[str]
    at: float


class Hush(CrowdMessage, frozen=True, tag="hush"):
    """Publish nothing more, and neither come nor go. What comes is still received."""


class CompareReceipts(CrowdMessage, frozen=True, tag="compare"):
    """Asks for :class:`Compared`: what the data cluster has found, by BE subscription."""

    found: dict[int, list[int]]


class Gathered(CrowdMessage, frozen=True, tag="gathered"):
    """All are ready who could come. ``subscriptions`` has the number of the BE subscription of each that they hold."""

    people: int
    subscriptions: list[int]


class Heard(CrowdMessage, frozen=True, tag="heard"):
    """One of the notifications that somebody got: how many reports it has, and the gravest of them."""

    who: str
    channel: str
    parameters: dict[str, Any]
    rows: int
    gravest: dict[str, Any]


class PersonMoved(CrowdMessage, frozen=True, tag="moved"):
    """Somebody's program went over to another broker, without a gap."""

    who: str
    before: str
    after: str


class MissedNotes(msgspec.Struct, frozen=True):
    """Executions that found something for somebody's subscription, and whose notifications never came."""

    who: str
    subscription: int
    executions: list[int]


class Compared(CrowdMessage, frozen=True, tag="compared"):
    """Of ``expected`` notifications, how many never came, some of them named; and the BE subscriptions ever held.

    ``absent`` people were not connected, so that nothing is expected of theirs.
    """

    expected: int = 0
    lost: int = 0
    missed: list[MissedNotes] = []
    subscriptions: list[int] = []
    absent: int = 0

    @property
    def delivered(self) -> int:
        """How many came."""
        return self.expected - self.lost


class CrowdTrouble(CrowdMessage, frozen=True, tag="trouble"):
    """Something a person should see."""

    message: str


class CrowdFigures(CrowdMessage, frozen=True, tag="figures"):
    """All that happened so far, counted.

    ``held`` subscriptions were made. ``again`` came again after a logout, whose acknowledgement had not arrived.
    ``withheld`` locations were not published, since the one before had no answer yet. Delays: ``waits`` from a
    report's acknowledgement to who is told of it, ``answers`` from a location's sending to its acknowledgement, and of
    the generator itself ``late`` from when a publication was due to its sending, ``lags`` of its event loop.
    """

    held: int = 0
    logouts: int = 0
    unsubscribed: int = 0
    notifications: int = 0
    bytes: int = 0
    published: dict[str, int] = {}
    withheld: int = 0
    moved: int = 0
    lost_connections: int = 0
    duplicates: int = 0
    disordered: int = 0
    again: int = 0
    waits: Delays = {}
    answers: Delays = {}
    late: Delays = {}
    lags: Delays = {}


Order = Begin | Acknowledged | Hush | CompareReceipts
Telling = Gathered | Heard | PersonMoved | CrowdFigures | Compared | CrowdTrouble


def add_figures(parts: Iterable[CrowdFigures]) -> CrowdFigures:
    """The figures of several processes as those of one."""
    total: dict[str, Any] = msgspec.structs.asdict(CrowdFigures())
    for part in parts:
        for name, value in msgspec.structs.asdict(part).items():
            total[name] = _sum(total[name], value) if isinstance(value, dict) else total[name] + value
    return CrowdFigures(**total)


def merge_comparisons(parts: Iterable[Compared]) -> Compared:
    """What several processes found missing, as if it was one."""
    known = list(parts)
    return Compared(
        sum(part.expected for part in known),
        sum(part.lost for part in known),
        [missed for part in known for missed in part.missed],
        sorted({number for part in known for number in part.subscriptions}),
        sum(part.absent for part in known),
    )


def _sum(one: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
    return dict(Counter(one) + Counter(other))

"""One move of a subscriber, as it is remembered while it is under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from tocsin.coordinator.events import Handle, Link


class Phase(Enum):
    """How far a move is."""

    PREPARING = auto()  # the destination was asked to prepare
    TELLING = auto()  # it has; the subscriber is on its way, or about to be told


@dataclass
class OngoingMove:
    """A move under way.

    Args:
        deadline: when it is given up.
        outdated: the subscriptions have changed since the destination was last asked to prepare.
        owed: who waits for ``Kept`` until the destination knows of a change: link and reference.
        waiters: requests to be answered when there is a broker to name.
    """

    subscriber: str
    stay: int
    phase: Phase = Phase.PREPARING
    deadline: float = 0.0
    outdated: bool = False
    owed: list[tuple[Link, int]] = field(default_factory=list)
    waiters: list[Handle] = field(default_factory=list)


@dataclass(frozen=True)
class MoveEnded:
    """A move is over; if not ``settled``, the subscriber is where it was; if ``placed``, it was nowhere before."""

    subscriber: str
    settled: bool
    placed: bool = False

"""Failure detection: which brokers are dead."""

from __future__ import annotations

import math

from tocsin.coordinator.limits import CoordinatorLimits
from tocsin.coordinator.registry import BrokerMember, BrokerRegistry


class Detector:
    """A broker is dead when its connection is lost and it does not return in time, or it is connected and silent.

    What can go wrong: a broker that is only cut off is taken for dead. It goes on serving whom it has, while they are
    placed elsewhere under a new stay; when it is back, it is told to release them.
    """

    def __init__(self, registry: BrokerRegistry, limits: CoordinatorLimits) -> None:
        self._registry, self._limits = registry, limits

    def heard(self, now: float, member: BrokerMember) -> None:
        """A connected broker gave a sign of life."""
        member.due = now + self._limits.silence

    def lost(self, now: float, member: BrokerMember) -> None:
        """A broker's connection is gone."""
        member.due = now + self._limits.grace

    def declare_dead(self, now: float) -> list[BrokerMember]:
        """The brokers that are dead from now on."""
        dead = [member for member in self._registry if not member.dead and member.due <= now]
        for member in dead:
            member.dead, member.due = True, math.inf
        return dead

    def wake(self) -> float:
        """When the next one would be dead."""
        return min((member.due for member in self._registry if not member.dead), default=math.inf)

"""Whether there are too many nodes, or too few, for what there is to do."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tocsin.slices.classification import NodeClass
from tocsin.slices.registry import NodeMember


class Elasticity:
    """Looks round by round how busy all nodes are together.

    Args:
        shrink_below: a node is not needed when the processors of the others would be in use by less than this part, and
            nobody is overloaded,
        seconds: and that for so long. What has begun to drain counts as gone.
        grow_above: another one is wanted when those that there are are in use by more than this, for as long.
        least: so many nodes stay in any case.
    """

    def __init__(
        self, shrink_below: float = 0.5, grow_above: float = 0.75, seconds: float = 30.0, least: int = 1
    ) -> None:
        self._shrink_below, self._grow_above, self._seconds, self._least = shrink_below, grow_above, seconds, least
        self._idle_since = self._busy_since = inf
        self.wanted = 0
        """How many more nodes there should be."""

    def spare(self, now: float, members: Sequence[NodeMember]) -> NodeMember | None:
        """The smallest of the nodes, if the others could do its work and have had time for it for long enough."""
        staying = [member for member in members if member.takes]
        if not staying or any(member.report is None for member in staying) or len(staying) < len(members):
            self._idle_since = self._busy_since = inf
            return None
        smallest = min(staying, key=lambda member: (member.capacity, member.name))
        work = sum(member.report.cpu * member.capacity for member in staying if member.report)
        capacity = sum(member.capacity for member in staying)
        self.wanted = self._missing(now, work / capacity)
        rest = capacity - smallest.capacity
        behind = any(member.load is NodeClass.OVERLOADED for member in staying)
        if behind or len(staying) <= self._least or not rest or work / rest >= self._shrink_below:
            self._idle_since = inf
            return None
        self._idle_since = min(self._idle_since, now)
        if now - self._idle_since < self._seconds:
            return None
        self._idle_since = inf
        return smallest

    def _missing(self, now: float, used: float) -> int:
        self._busy_since = min(self._busy_since, now) if used > self._grow_above else inf
        return int(now - self._busy_since >= self._seconds)

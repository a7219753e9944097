"""Whether there are too many nodes, or too few, for what there is to do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
        keep: nodes that are never spared.
    """

    def __init__(
        self,
        shrink_below: float = 0.5,
        grow_above: float = 0.75,
        seconds: float = 30.0,
        least: int = 1,
        keep: Collection[str] = (),
    ) -> None:
        self._shrink_below, self._grow_above, self._seconds, self._least = shrink_below, grow_above, seconds, least
        self._keep = frozenset(keep)
        self._idle, self._idle_since, self._busy_since = "", inf, inf
        self.wanted = 0
        """How many more nodes there should be."""

    def spare(self, now: float, *feeds: Sequence[NodeMember]) -> NodeMember | None:
        """The smallest of the nodes that the others could do without, if they could for long enough.

        Each feed has its nodes, and a node may be one of several feeds: all of them must be able to do without it. Who
        does not get on counts as if it were not there, though it seems to have nothing to do.
        """
        feeds = tuple([member for member in nodes if not member.fails] for nodes in feeds)
        members = [member for nodes in feeds for member in nodes]
        if not members or not all(member.takes and member.report for member in members):
            # Somebody comes, goes or is lost: what the others have to do is not known before that is over.
            self._idle, self._idle_since, self._busy_since = "", inf, inf
            return None
        self.wanted = self._missing(now, max(_utilisation(nodes) for nodes in feeds if nodes))
        order = sorted(members, key=lambda member: (member.capacity, member.name))
        idle = next((member for member in order if self._is_idle(member, feeds)), None)
        if idle is None or idle.name != self._idle:
            self._idle, self._idle_since = (idle.name, now) if idle else ("", inf)
        return idle if now - self._idle_since >= self._seconds else None

    def _is_idle(self, node: NodeMember, feeds: Sequence[Sequence[NodeMember]]) -> bool:
        own = [nodes for nodes in feeds if any(member.name == node.name for member in nodes)]
        return node.name not in self._keep and all(self._is_enough(nodes, node.name) for nodes in own)

    def _is_enough(self, nodes: Sequence[NodeMember], without: str) -> bool:
        """Whether a feed's nodes could do all there is without one of them."""
        rest = sum(member.capacity for member in nodes if member.name != without)
        behind = any(member.load is NodeClass.OVERLOADED for member in nodes)
        return len(nodes) > self._least and not behind and rest > 0 and _work(nodes) / rest < self._shrink_below

    def _missing(self, now: float, used: float) -> int:
        self._busy_since = min(self._busy_since, now) if used > self._grow_above else inf
        return int(now - self._busy_since >= self._seconds)


def _work(nodes: Sequence[NodeMember]) -> float:
    return sum(member.report.cpu * member.capacity for member in nodes if member.report)


def _utilisation(nodes: Sequence[NodeMember]) -> float:
    """Which part of the nodes' processors is in use."""
    return _work(nodes) / sum(member.capacity for member in nodes)

"""The processing nodes as the head knows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tocsin.slices.classification import NodeClass, classify
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import Hello, NodeReport


@dataclass
class NodeMember:
    """A node: how it is, what it wants, and what operators want of it.

    Args:
        connection: None while it is lost, which is so since ``lost_at``.
        heard: when it last said something.
        joining: whether it is to have its share as a new one.
        draining: whether an operator, or the head itself as there is too little to do, wants it to be emptied.
        leaving: whether it wants that itself.
        told: whether it was told that it may leave.
        stuck: whether slices were taken from it as it did not get on with them; it gets none while there are others,
            until it has committed something, come anew, or waited for long enough (``stuck_until``) to be tried again.
        stuck_times: how often in a row that was so.
    """

    name: str
    capacity: float
    heard: float
    connection: int | None = None
    lost_at: float = inf
    joining: bool = True
    draining: bool = False
    leaving: bool = False
    told: bool = False
    stuck: bool = False
    stuck_until: float = inf
    stuck_times: int = 0
    report: NodeReport | None = None
    load: NodeClass = NodeClass.NORMAL

    @property
    def empties(self) -> bool:
        """Whether it is to give its slices away."""
        return self.draining or self.leaving

    @property
    def takes(self) -> bool:
        """Whether it can be given slices."""
        return self.connection is not None and not self.empties

    @property
    def problem(self) -> str:
        """Why it does not get on, as it says itself."""
        return self.report.problem if self.report is not None else ""

    @property
    def fails(self) -> bool:
        """Whether it does not get on, by its own word or as it was seen; it gets nothing then while others can."""
        return self.stuck or bool(self.problem)

    def bench(self, now: float, limits: SliceLimits) -> None:
        """It does not get on, and is left alone for longer each time."""
        if self.stuck:
            return
        seconds = limits.stuck_seconds * 2.0 ** min(self.stuck_times + 2, 30)
        self.stuck, self.stuck_until = True, now + min(seconds, limits.longest_stuck_seconds)
        self.stuck_times += 1

    def get_on(self) -> None:
        """It has committed something, or come anew."""
        self.stuck, self.stuck_times = False, 0


class NodeRegistry:
    """All nodes, by name and by connection. A node that was away for too long is forgotten."""

    def __init__(self, limits: SliceLimits) -> None:
        self._limits = limits
        self._members: dict[str, NodeMember] = {}
        self._names: dict[int, str] = {}

    def __iter__(self) -> Iterator[NodeMember]:
        return iter(self._members.values())

    def __len__(self) -> int:
        return len(self._members)

    def get(self, name: str) -> NodeMember | None:
        """A node by its name."""
        return self._members.get(name)

    def on(self, connection: int) -> NodeMember | None:
        """The node that has a connection."""
        name = self._names.get(connection)
        return self._members.get(name) if name is not None else None

    def takes(self, name: str) -> bool:
        """Whether a node can be given slices that somebody else has."""
        member = self._members.get(name)
        return member is not None and member.takes and not member.fails

    def add(self, now: float, connection: int, hello: Hello) -> NodeMember:
        """A node has come, or come back."""
        member = self._members.get(hello.node)
        if member is None:
            member = self._members[hello.node] = NodeMember(hello.node, hello.capacity, now)
        member.capacity, member.leaving, member.told = hello.capacity, hello.leaving, False
        member.get_on()
        member.connection, member.heard, member.lost_at = connection, now, inf
        self._names[connection] = hello.node
        return member

    def lose(self, now: float, member: NodeMember) -> None:
        """A node's connection is over."""
        if member.connection is not None:
            self._names.pop(member.connection, None)
            member.connection, member.lost_at = None, now

    def forget(self, member: NodeMember) -> None:
        """A node is gone for good, or counts as such."""
        self._members.pop(member.name, None)

    def report(self, member: NodeMember, report: NodeReport) -> None:
        """How a node is."""
        member.report = report
        member.load = classify(member.load, report)

    def silent(self, now: float) -> list[NodeMember]:
        """Those who have a connection and have said nothing for too long."""
        before = now - self._limits.silent_seconds
        return [member for member in self if member.connection is not None and member.heard <= before]

    def dead(self, now: float) -> list[NodeMember]:
        """Those who have been lost for too long."""
        before = now - self._limits.grace_seconds
        return [member for member in self if member.lost_at <= before]

    def try_again(self, now: float) -> None:
        """Who was stuck, and is left with nothing that could show whether it still is, may have slices again."""
        for member in self:
            if member.stuck and member.stuck_until <= now and not member.problem:
                member.stuck = False

    def wake(self) -> float:
        """When the next of them may have become silent or dead."""
        limits = self._limits
        return min(
            (
                member.lost_at + limits.grace_seconds
                if member.connection is None
                else member.heard + limits.silent_seconds
                for member in self
            ),
            default=inf,
        )

"""A whole system: a log and its dataset, a head and the heads before it, and processing nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from tocsin.simulate.clock import VirtualClock
from tocsin.simulate.network import Conditions, SimulatedNetwork
from tocsin.simulate.process import SimulatedWorld
from tocsin.simulate.slices.hosts import Circumstances, NodeHost, NodePower, SliceHeadHost
from tocsin.simulate.slices.lake import SimulatedDataset, SlicedLog
from tocsin.simulate.trace import Trace
from tocsin.slices import events
from tocsin.slices.balancing import SlicePlanners
from tocsin.slices.elasticity import Elasticity
from tocsin.slices.head import HeadCore
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import FromHead


class SliceSystem:
    """Everything. What is started twice, or ended when it is not there, stays as it is.

    Args:
        log: what nodes read.
        planners: what balances, for each head anew; so too ``elasticity``.

    ``sent`` is told of every message that a head sends to a node, with that node's name, and ``read`` of the slices of
    every batch that a node begins.
    """

    def __init__(
        self,
        log: SlicedLog,
        seed: int = 0,
        limits: SliceLimits | None = None,
        planners: Callable[[], SlicePlanners] = SlicePlanners.by_name,
        conditions: Conditions | None = None,
        circumstances: Circumstances | None = None,
        elasticity: Callable[[], Elasticity | None] = lambda: None,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self.log, self.limits, self.planners = log, limits or SliceLimits(), planners
        self.random, self.clock, self.trace = Random(seed), VirtualClock(), Trace(show)
        self.network = SimulatedNetwork(self.clock, self.random, conditions)
        self.world = SimulatedWorld(self.network, self.trace)
        self.circumstances, self.elasticity = circumstances or Circumstances(), elasticity
        self.dataset = SimulatedDataset(log.slices)
        self.sent: Callable[[str, FromHead], None] | None = None
        self.read: Callable[[str, Iterable[int]], None] | None = None
        self.heads: list[SliceHeadHost] = []
        self.nodes: dict[str, NodeHost] = {}
        self._started = 0

    @property
    def head(self) -> SliceHeadHost:
        """The newest head."""
        return self.heads[-1]

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self.clock.pass_time(seconds)

    def remark(self, text: str) -> None:
        """Notes what is done to the system."""
        self.trace.remark(self.clock.now, text)

    def start_head(self) -> SliceHeadHost:
        """Starts a head on what is stored. One that is there goes on, and does not know that its term is over."""
        term = self.dataset.begin_term()
        self.remark(f"head {term} starts")
        core = HeadCore(term, self.dataset.markers, self.planners(), self.limits, self.elasticity())
        host = SliceHeadHost(self.world, f"head-{term}", core, self.log, self.dataset, self.circumstances, self._sends)
        self.heads.append(host)
        return host

    def restart_head(self) -> None:
        """Starts a head if there is none."""
        if not self.heads or not self.head.alive:
            self.start_head()

    def start_node(self, name: str, power: NodePower | None = None, capacity: float = 1.0) -> NodeHost:
        """Starts a node's program."""
        if name in self.nodes and self.nodes[name].alive:
            return self.nodes[name]
        self.remark(f"node {name} starts")
        self._started += 1
        host = self.nodes[name] = NodeHost(
            self.world,
            name,
            lambda: self.head.host,
            self.log,
            self.dataset,
            power or NodePower(),
            self.circumstances,
            self.limits,
            capacity,
            self._started,
            self._reads,
        )
        return host

    def crash(self, name: str) -> None:
        """A node, or the newest head, ends at once."""
        host: SliceHeadHost | NodeHost | None = self.head if name == "head" else self.nodes.get(name)
        if host and host.alive:
            self.remark(f"{host.host} crashes")
            host.crash()

    def drain(self, node: str, on: bool = True) -> None:
        """An operator wants a node to be emptied, or no more."""
        self.head.tell(events.Drain(node, on))

    def spare(self, node: str, on: bool = True) -> None:
        """A node is not needed, or is after all."""
        self.head.tell(events.Spare(node, on))

    def _reads(self, node: str, slices: Iterable[int]) -> None:
        if self.read:
            self.read(node, slices)

    def _sends(self, node: str, message: FromHead) -> None:
        if self.sent:
            self.sent(node, message)

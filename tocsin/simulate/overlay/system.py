"""A whole overlay: heads in a tree, edges, publishers and subscribers, each of which can crash and start again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any, Final

from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.tuning import Tuning
from tocsin.simulate.clock import VirtualClock
from tocsin.simulate.network import Conditions, SimulatedNetwork
from tocsin.simulate.overlay.brokers import EdgeHost, HeadHost, Power
from tocsin.simulate.overlay.clients import Album, PublisherHost, SubscriberHost
from tocsin.simulate.overlay.disks import HeadDisk
from tocsin.simulate.overlay.service import ServiceTimes
from tocsin.simulate.overlay.watch import SessionWatch
from tocsin.simulate.process import SimulatedWorld
from tocsin.simulate.trace import Trace

POWERFUL: Final = Power(1e-7, 1e12)


class OverlaySystem:
    """Everything. What is started twice, or ended when it is not there, stays as it is.

    Args:
        parents: each head with the one that it dials; the first has none.
        edges: each edge with its head.
        pace: how long publications wait for a link at most, while control messages overtake them.
        store_seconds: how long a head's disk takes.
        powers: what the edges' machines can do; those not named have one on which nothing is ever much.
        times: what brokers' machines take; those not named take no time.
        programs: what a subscriber's program is.

    ``doubled`` says of each control message that comes to a broker how much later it comes again; by default none does.
    """

    def __init__(
        self,
        parents: dict[str, str | None],
        edges: dict[str, str],
        seed: int = 0,
        limits: OverlayLimits | None = None,
        conditions: Conditions | None = None,
        pace: float = 0.0,
        store_seconds: float = 0.01,
        tuning: Tuning | None = None,
        powers: dict[str, Power] | None = None,
        times: dict[str, ServiceTimes] | None = None,
        programs: type[SubscriberHost] = SubscriberHost,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self.parents, self.clusters, self.limits = parents, edges, limits or OverlayLimits()
        self.random, self.clock, self.trace = Random(seed), VirtualClock(), Trace(show)
        self.network = SimulatedNetwork(self.clock, self.random, conditions)
        self.world = SimulatedWorld(self.network, self.trace)
        self.tuning, self.powers, self.times = tuning or Tuning(), powers or {}, times or {}
        self.programs = programs
        self.on_subscriber: Callable[[SubscriberHost], None] | None = None
        self.pace, self.store_seconds = pace, store_seconds
        self.doubled: Callable[[], float | None] = lambda: None
        self.watches: list[SessionWatch] = []
        self.disks = {name: HeadDisk() for name in parents}
        self.heads: dict[str, HeadHost] = {}
        self.edges: dict[str, EdgeHost] = {}
        self.subscribers: dict[str, SubscriberHost] = {}
        self.albums: dict[str, Album] = {}
        self.publishers: dict[str, PublisherHost] = {}
        self._incarnations = count(1)
        for name in parents:
            self.start_head(name)
        for name in edges:
            self.start_edge(name)

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self.clock.pass_time(seconds)

    def remark(self, text: str) -> None:
        """Notes what is done to the system."""
        self.trace.remark(self.clock.now, text)

    def start_head(self, name: str) -> None:
        """Starts a head's process on what is stored."""
        if name not in self.heads or not self.heads[name].alive:
            self.remark(f"head {name} starts")
            parent = self.parents[name]
            dials = [parent] if parent else []
            head = self.heads[name] = HeadHost(
                self.world,
                name,
                self._incarnation(name),
                self.disks[name],
                dials,
                self.limits,
                self.tuning,
                self.pace,
                self.times.get(name),
            )
            head.store_seconds = self.store_seconds
            head.doubled = lambda: self.doubled()
            self.watches.append(head.watch)

    def start_edge(self, name: str) -> None:
        """Starts an edge's process."""
        if name not in self.edges or not self.edges[name].alive:
            self.remark(f"edge {name} starts")
            self.edges[name] = EdgeHost(
                self.world,
                name,
                self._incarnation(name),
                self.clusters[name],
                self.limits,
                self.tuning,
                self.powers.get(name, POWERFUL),
                self.pace,
                self.times.get(name),
            )
            self.edges[name].doubled = lambda: self.doubled()
            self.watches.append(self.edges[name].watch)

    def subscribe(self, name: str, where: str, edges: list[str], refuses: bool = False) -> SubscriberHost:
        """A subscriber's program starts for the first time; one that ``refuses`` goes nowhere where it is sent."""
        self.albums[name] = Album(name, where, refuses)
        return self.start_subscriber(name, edges)

    def start_subscriber(self, name: str, edges: list[str]) -> SubscriberHost:
        """A subscriber's program starts with the cursors that its application has kept."""
        if name not in self.subscribers or not self.subscribers[name].alive:
            self.remark(f"{name} starts")
            self.subscribers[name] = self.programs(self.world, self.albums[name], edges)
            if self.on_subscriber:
                self.on_subscriber(self.subscribers[name])
            self.subscribers[name].start()
        return self.subscribers[name]

    def start_publisher(self, name: str, head: str) -> PublisherHost:
        """A publisher's program starts, perhaps in the place of one that has ended."""
        before = self.publishers.get(name)
        if before and before.alive:
            return before
        host = self.publishers[name] = PublisherHost(self.world, name, head)
        if before:
            host.published = before.published
        host.start()
        return host

    def publish(self, name: str, **content: Any) -> None:
        """A publisher publishes something."""
        self.publishers[name].publish(content)

    def lose_disk(self, name: str) -> None:
        """A head ends, and its disk is lost."""
        self.crash(name)
        self.remark(f"the disk of {name} is lost")
        self.disks[name].lose(self._count_confirmed())

    def restore_disk(self, name: str) -> None:
        """A head ends, and the copy of its disk that was made last takes its place."""
        self.crash(name)
        self.remark(f"a copy of the disk of {name} is restored")
        self.disks[name].restore(self._count_confirmed())

    def _count_confirmed(self) -> dict[str, int]:
        return {name: len(host.published) - host.core.waiting for name, host in self.publishers.items()}

    def _incarnation(self, name: str) -> str:
        return f"{name}.{next(self._incarnations)}"

    def crash(self, name: str) -> None:
        """A head, an edge or a subscriber ends at once."""
        processes: list[Any] = [self.heads.get(name), self.edges.get(name), self.subscribers.get(name)]
        for process in processes:
            if process and process.alive:
                self.remark(f"{name} crashes")
                process.crash()

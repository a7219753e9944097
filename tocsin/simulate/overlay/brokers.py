"""Processes of the overlay's brokers: their cores, their links to each other, and the connections of clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from tocsin.overlay import actions, events
from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import Routed
from tocsin.overlay.replay import KeptLog
from tocsin.overlay.tuning import Tuning
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.process import CoreProcess, SimulatedWorld

HEAD, EDGE, CLIENT = "head", "edge", "client"
_AGAIN: Final = (0.2, 1.0)
_GAUGE_SECONDS: Final = 0.5


class _Neighbour:
    """A link to another broker, at the end that has dialled it or at the other."""

    def __init__(self, process: OverlayHost, broker: str, is_head: bool, dialled: bool) -> None:
        self._process, self._broker, self._is_head, self._dialled = process, broker, is_head, dialled
        self._waiting: deque[Any] = deque()
        self.link: SimulatedConnection | None = None
        self._stands = False

    def dial(self) -> None:
        """Opens it."""
        process = self._process
        if process.alive:
            self.link = process.world.network.dial(process.host, self._broker, f"{process.kind} {process.host}", self)
            self.link.when_open = self.opened

    def opened(self) -> None:
        """It stands."""
        self._stands = True
        self._process.neighbours[self._broker] = self
        self._process.tell(events.LinkOpened(self._broker, self._is_head))

    def send(self, message: Any, urgent: bool) -> None:
        """Says something; what is not urgent waits for a while, and is overtaken."""
        if urgent or not self._process.pace:
            self._send(message)
            return
        self._waiting.append(message)
        world = self._process.world
        world.clock.after(world.random.random() * self._process.pace, self._send_next)

    def replace(self) -> None:
        """The other broker has opened another one."""
        if self._stands:
            self._stands = False
            self._process.neighbours.pop(self._broker, None)
            self._process.tell(events.LinkLost(self._broker))

    def received(self, link: SimulatedConnection, message: Any) -> None:  # noqa: ARG002
        """The other broker says something."""
        if self._stands:
            self._process.tell(events.LinkSaid(self._broker, message))

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is over, or could not be opened."""
        self.replace()
        if self._dialled:
            world = self._process.world
            self._waiting.clear()
            world.clock.after(world.random.uniform(*_AGAIN), self.dial)

    def drained(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""

    def _send_next(self) -> None:
        if self._waiting:
            self._send(self._waiting.popleft())

    def _send(self, message: Any) -> None:
        if self.link and self._stands:
            self.link.send(0 if self._dialled else 1, message)


class _Client:
    """A connection of a publisher or a subscriber."""

    def __init__(self, process: OverlayHost, number: int) -> None:
        self._process, self._number = process, number

    def received(self, link: SimulatedConnection, message: Any) -> None:  # noqa: ARG002
        """It says something."""
        self._process.tell(events.ClientSaid(self._number, message))

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is gone."""
        self._process.clients.pop(self._number, None)
        self._process.tell(events.ClientLost(self._number))

    def drained(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""


class OverlayHost(CoreProcess):
    """A head or an edge, from its start to its end.

    ``pace`` is how long publications wait for a link at most, while control messages overtake them.
    """

    kind = EDGE
    core: Head | Edge

    def __init__(self, world: SimulatedWorld, name: str, core: Head | Edge, dials: list[str], pace: float) -> None:
        super().__init__(world, name, core, events.Tick())
        self.pace = pace
        self.neighbours: dict[str, _Neighbour] = {}
        self.clients: dict[int, SimulatedConnection] = {}
        self._numbers = count(1)
        world.network.listen(name, self._accept)
        for head in dials:
            _Neighbour(self, head, is_head=True, dialled=True).dial()

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        match action:
            case actions.SendLink(broker, message, urgent):
                if neighbour := self.neighbours.get(broker):
                    neighbour.send(message, urgent)
            case actions.SendNote(sessions, note):
                for session in sessions:
                    self._send(session, note)
            case actions.SendClient(session, message):
                self._send(session, message)
            case actions.CloseClient(session):
                if link := self.clients.pop(session, None):
                    link.close(1)

    def _send(self, session: int, message: Any) -> None:
        if link := self.clients.get(session):
            link.send(1, message)

    def _accept(self, link: SimulatedConnection, purpose: str) -> _Neighbour | _Client | None:
        kind, _, name = purpose.partition(" ")
        if kind == CLIENT:
            number = next(self._numbers)
            self.clients[number] = link
            return _Client(self, number)
        if before := self.neighbours.get(name):
            before.replace()
        neighbour = _Neighbour(self, name, kind == HEAD, dialled=False)
        neighbour.link = link
        # Only when the connection has been taken.
        self.world.clock.after(0.0, neighbour.opened)
        return neighbour


class HeadHost(OverlayHost):
    """A head with its disk, which outlives it. ``stored`` is told of every publication that is on it."""

    kind = HEAD
    core: Head

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        incarnation: str,
        disk: KeptLog,
        dials: list[str],
        limits: OverlayLimits,
        tuning: Tuning,
        pace: float = 0.0,
    ) -> None:
        super().__init__(world, name, Head(name, incarnation, disk, limits, tuning), dials, pace)
        self.disk, self._most = disk, limits.replay_publications
        self.store_seconds = 0.01
        self.stored: Callable[[Routed], None] | None = None

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        if isinstance(action, actions.AppendLog):
            self.world.clock.after(self.store_seconds, self._store, action.publication)
        else:
            super().carry_out(action)

    def _store(self, publication: Routed) -> None:
        if not self.alive:
            return
        self.disk.publications.append(publication)
        del self.disk.publications[: -self._most]
        self.disk.last = publication.offset
        self.disk.sequences[publication.publisher] = publication.sequence
        if self.stored:
            self.stored(publication)
        self.tell(events.LogStored(publication.offset))


@dataclass(frozen=True)
class Power:
    """What an edge's machine can do: seconds to match against one subscription, and bytes per second to send."""

    matching_seconds: float
    bandwidth: float


class EdgeHost(OverlayHost):
    """An edge, of which nothing outlives it. What it is told of its load follows from its ``power``."""

    core: Edge

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        incarnation: str,
        head: str,
        limits: OverlayLimits,
        tuning: Tuning,
        power: Power,
        pace: float = 0.0,
    ) -> None:
        super().__init__(world, name, Edge(name, head, incarnation, limits, tuning), [head], pace)
        self.power = power
        self._gauge()

    def _gauge(self) -> None:
        if not self.alive:
            return
        delay = self.power.matching_seconds * max(1, len(self.core.subscriptions))
        load = self.core.surroundings.load()
        cpu = min(1.0, load.incoming * delay) if load else 0.0
        self.tell(events.Gauged(delay, self.power.bandwidth, cpu=cpu))
        self.world.clock.after(_GAUGE_SECONDS, self._gauge)

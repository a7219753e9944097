"""Processes of the overlay's brokers: their cores, their links to each other, and the connections of clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import msgspec

from tocsin.broker.backoff import Backoff
from tocsin.overlay import actions, events
from tocsin.overlay.dialogue import Note, Publish
from tocsin.overlay.edge import Edge
from tocsin.overlay.head import Head
from tocsin.overlay.limits import OverlayLimits
from tocsin.overlay.messages import ClusterLoad, Control, FromLink, Mark, Routed, SessionMigrating
from tocsin.overlay.tuning import Tuning
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.overlay.disks import HeadDisk
from tocsin.simulate.overlay.service import BrokerService, ServiceTimes
from tocsin.simulate.overlay.watch import SessionWatch
from tocsin.simulate.process import CoreProcess, SimulatedWorld

HEAD, EDGE, CLIENT = "head", "edge", "client"
_GAUGE_SECONDS: Final = 0.5
_MEASURED_SECONDS: Final = 1.0
_encode = msgspec.json.Encoder().encode


class _Neighbour:
    """A link to another broker, at the end that has dialled it or at the other."""

    def __init__(self, process: OverlayHost, broker: str, is_head: bool, dialled: bool) -> None:
        self._process, self._broker, self._is_head, self._dialled = process, broker, is_head, dialled
        self._waiting: deque[Any] = deque()
        self.link: SimulatedConnection | None = None
        self._stands = False
        self._backoff = Backoff(process.world.random)
        self._since: float | None = None

    def dial(self) -> None:
        """Opens it."""
        process = self._process
        if process.alive:
            self.link = process.world.network.dial(process.host, self._broker, f"{process.kind} {process.host}", self)
            self.link.when_open = self.opened

    def opened(self) -> None:
        """It stands."""
        self._stands, self._since = True, self._process.world.clock.now
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
        """The other broker says something; a control message may come twice."""
        self._hear(message)
        if isinstance(message, Control | ClusterLoad) and (late := self._process.doubled()) is not None:
            self._process.world.clock.after(late, self._hear, message)

    def _hear(self, message: Any) -> None:
        if self._stands:
            self._process.hear(events.LinkSaid(self._broker, message), self)

    @property
    def stands(self) -> bool:
        """Whether what comes on it counts."""
        return self._stands

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is over, or could not be opened."""
        self.replace()
        if self._dialled:
            clock = self._process.world.clock
            self._waiting.clear()
            lasted, self._since = 0.0 if self._since is None else clock.now - self._since, None
            clock.after(self._backoff.after(lasted), self.dial)

    def close(self) -> None:
        """Ends it."""
        if self.link:
            self.link.close(0 if self._dialled else 1)
            self.lost(self.link, 0)

    def flushed(self, link: SimulatedConnection) -> None:
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
        self._event = events.Flushed(number)

    def received(self, link: SimulatedConnection, message: Any) -> None:  # noqa: ARG002
        """It says something."""
        self._process.hear(events.ClientSaid(self._number, message))

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is gone."""
        self._process.clients.pop(self._number, None)
        self._process.tell(events.ClientLost(self._number))

    def flushed(self, link: SimulatedConnection) -> None:  # noqa: ARG002
        """It has read everything, perhaps at its leisure."""
        process, world = self._process, self._process.world
        if self._number in process.awaited:
            process.awaited.discard(self._number)
            world.clock.after(world.random.choice([0.0, 0.0, process.leisure]), process.tell, self._event)


class OverlayHost(CoreProcess):
    """A head or an edge, from its start to its end.

    ``pace`` is how long publications wait for a link at most, while control messages overtake them. Some clients take
    their ``leisure`` before they have read what they were sent. ``doubled`` says of each control message that comes how
    much later it comes again, or that it does not. With ``times`` the machine takes time for what it does;
    without, none.
    """

    kind = EDGE
    core: Head | Edge

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        core: Head | Edge,
        dials: list[str],
        pace: float,
        tuning: Tuning,
        times: ServiceTimes | None = None,
    ) -> None:
        super().__init__(world, name, core, events.Tick())
        self.pace, self.leisure = pace, 0.5
        self.doubled: Callable[[], float | None] = lambda: None
        self.watch = SessionWatch(name, tuning, world.clock)
        self.awaited: set[int] = set()
        self.service = BrokerService(world.clock, times, self.subscriptions, self._matched) if times else None
        self.neighbours: dict[str, _Neighbour] = {}
        self.clients: dict[int, SimulatedConnection] = {}
        self._numbers = count(1)
        world.network.listen(name, self._accept)
        for head in dials:
            _Neighbour(self, head, is_head=True, dialled=True).dial()

    def subscriptions(self) -> int:
        """How many the matching engine has."""
        raise NotImplementedError

    def hear(self, event: events.Event, link: _Neighbour | None = None) -> None:
        """Something has come. If the machine takes time, publications wait for it, and what must stay behind them."""
        if self.service and _is_matched(event):
            self.service.take((event, link), instant=_is_mark(event))
        else:
            self.tell(event)

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done; if the machine takes time, what it sends waits for the bandwidth."""
        self.watch.see(action)
        if self.service is None or _is_urgent(action):
            self._act(action)
            return
        size = _size(action)
        leaves = self.service.send(size)
        if isinstance(action, actions.SendNote):
            self.sending(action.note, len(action.clients), size / self.service.times.bandwidth, leaves)
        self.world.clock.at(leaves, self._act, action)

    def sending(self, note: Note, subscribers: int, seconds: float, leaves: float) -> None:
        """A publication is sent to so many, which takes so long; the last of it leaves at a time."""

    def _matched(self, item: tuple[events.Event, _Neighbour | None]) -> None:
        event, link = item
        if link is None or link.stands:
            self.tell(event)

    def _act(self, action: actions.Action) -> None:
        match action:
            case actions.SendLink(broker, message, urgent):
                if neighbour := self.neighbours.get(broker):
                    neighbour.send(message, urgent)
            case actions.SendNote(clients, note):
                links = [link for client in clients if (link := self.clients.get(client))]
                self.world.network.send_each(links, 1, note)
            case actions.SendClient(client, message):
                self._send(client, message)
            case actions.AwaitFlush(client):
                self.awaited.add(client)
                if (link := self.clients.get(client)) and link.is_idle(1):
                    self.awaited.discard(client)
                    self.world.clock.after(0.0, self.tell, events.Flushed(client))
            case actions.CloseClient(client):
                if link := self.clients.pop(client, None):
                    link.close(1)
            case actions.CloseLink(broker):
                self.neighbours[broker].close()

    def _send(self, client: int, message: Any) -> None:
        if link := self.clients.get(client):
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

    def lie(self, message: FromLink) -> None:
        """Says something on all links, whatever the core thinks of it."""
        for neighbour in list(self.neighbours.values()):
            neighbour.send(message, True)


class HeadHost(OverlayHost):
    """A head with its disk, which outlives it."""

    kind = HEAD
    core: Head

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        incarnation: str,
        disk: HeadDisk,
        dials: list[str],
        limits: OverlayLimits,
        tuning: Tuning,
        pace: float = 0.0,
        times: ServiceTimes | None = None,
    ) -> None:
        disk.begin(incarnation)
        super().__init__(world, name, Head(name, incarnation, disk.kept, limits, tuning), dials, pace, tuning, times)
        self.disk, self._most = disk, limits.replay_publications
        self.store_seconds = 0.01

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        if isinstance(action, actions.AppendLog):
            self.world.clock.after(self.store_seconds, self._store, action.publication)
        elif isinstance(action, actions.ForgetPublishers):
            self.world.clock.after(self.store_seconds, self._forget, action.names, action.floor)
        else:
            super().carry_out(action)

    def subscriptions(self) -> int:
        """What all its neighbours want."""
        links = self.core.links
        return sum(len(links.publications.filters_of(link)) for link in links.open)

    def _store(self, publication: Routed) -> None:
        if not self.alive:
            return
        self.disk.store(publication, self._most, self.world.clock.now)
        self.tell(events.LogStored(publication.offset))

    def _forget(self, names: list[str], floor: int) -> None:
        if self.alive:
            self.disk.forget(names, floor)


@dataclass(frozen=True)
class Power:
    """What an edge's machine can do: seconds to match against one subscription, and bytes per second to send."""

    matching_seconds: float
    bandwidth: float


class EdgeHost(OverlayHost):
    """An edge, of which nothing outlives it. What it is told of its load follows from its ``power``, or is measured
    of a machine that takes ``times``. Then ``sent`` is told of each publication that is sent to subscribers: to how
    many, for how long, and when the last of it leaves."""

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
        times: ServiceTimes | None = None,
    ) -> None:
        super().__init__(world, name, Edge(name, head, incarnation, limits, tuning), [head], pace, tuning, times)
        self.power = power
        self.sent: Callable[[str, Note, int, float, float], None] | None = None
        self._gauge()

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        if isinstance(action, actions.SendLink) and isinstance(action.message, Control):
            estimate = self.core.mediation.estimate
            if isinstance(action.message.body, SessionMigrating) and estimate:
                self.watch.gives(estimate.acceptor, estimate.other)
        super().carry_out(action)

    def subscriptions(self) -> int:
        """Whom it serves."""
        return len(self.core.subscriptions)

    def sending(self, note: Note, subscribers: int, seconds: float, leaves: float) -> None:
        """Tells whoever wants to know."""
        if self.sent:
            self.sent(self.host, note, subscribers, seconds, leaves)

    def _gauge(self) -> None:
        if not self.alive:
            return
        self.tell(self.service.gauge() if self.service else self._estimate())
        self.world.clock.after(_MEASURED_SECONDS if self.service else _GAUGE_SECONDS, self._gauge)

    def _estimate(self) -> events.Gauged:
        delay = self.power.matching_seconds * max(1, len(self.core.subscriptions))
        load = self.core.surroundings.load()
        cpu = min(1.0, load.incoming * delay) if load else 0.0
        return events.Gauged(delay, self.power.bandwidth, cpu=cpu)


def _is_matched(event: events.Event) -> bool:
    match event:
        case events.LinkSaid(_, Routed() | Mark()) | events.ClientSaid(_, Publish()):
            return True
        case _:
            return False


def _is_mark(event: events.Event) -> bool:
    return isinstance(event, events.LinkSaid) and isinstance(event.message, Mark)


def _is_urgent(action: actions.Action) -> bool:
    """Whether it overtakes what is sent to subscribers and neighbours."""
    match action:
        case actions.SendLink(urgent=urgent) | actions.SendClient(urgent=urgent):
            return urgent
        case _:
            return False


def _size(action: actions.Action) -> int:
    match action:
        case actions.SendNote(clients, note):
            return len(clients) * len(_encode(note))
        case actions.SendLink(message=said):
            return len(_encode(said))
        case actions.SendClient(message=told):
            return len(_encode(told))
        case _:
            return 0

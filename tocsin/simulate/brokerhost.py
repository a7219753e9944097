"""A broker's process: its core, its two links, and its subscribers' connections."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tocsin.broker import actions, events
from tocsin.broker.backoff import BEAT_SECONDS, Backoff
from tocsin.broker.core import BrokerCore
from tocsin.broker.holdings import Bearer
from tocsin.broker.limits import BrokerLimits
from tocsin.coordinator.tokens import Verifier
from tocsin.model import control, coordination
from tocsin.simulate import coordinatorhost, datahost
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.process import CoreProcess, SimulatedWorld
from tocsin.simulate.queueing import OutgoingQueue, Outlet


class Uplink:
    """A broker's link to the coordinator or to the data cluster, opened again whenever it is lost.

    The one to the data cluster can be used from the welcome on.
    """

    def __init__(self, process: BrokerHost, name: events.LinkName, host: str, purpose: str) -> None:
        self._process, self._name, self._host, self._purpose = process, name, host, purpose
        self._link: SimulatedConnection | None = None
        self.open = False
        self._opened_at = 0.0
        self._backoff = Backoff(process.world.random)
        self.spoke = 0.0

    def dial(self) -> None:
        """Opens it."""
        if self._process.alive:
            self._link = self._process.world.network.dial(self._process.host, self._host, self._purpose, self)
            if self._name == "coordinator":
                self._link.when_open = self._opened

    def send(self, message: Any) -> None:
        """Says something, if it is open."""
        if self._link and self.open:
            self.spoke = self._process.world.clock.now
            self._link.send(0, message)

    def received(self, link: SimulatedConnection, message: Any) -> None:  # noqa: ARG002
        """The other side says something."""
        if isinstance(message, control.Welcome):
            self._opened()
        else:
            self._process.told(message)

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is over, or could not be opened."""
        clock = self._process.world.clock
        lasted = clock.now - self._opened_at if self.open else 0.0
        if self.open:
            self.open = False
            self._process.tell(events.Lost(self._name))
        clock.after(self._backoff.after(lasted), self.dial)

    def flushed(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""

    def _opened(self) -> None:
        self.open, self._opened_at = True, self._process.world.clock.now
        self._process.tell(events.Connected(self._name))


class AcceptedConnection:
    """A subscriber's connection."""

    def __init__(self, process: BrokerHost, number: int) -> None:
        self._process, self._number = process, number

    def received(self, link: SimulatedConnection, message: bytes) -> None:  # noqa: ARG002
        """The subscriber says something."""
        self._process.tell(events.Received(self._number, message), message)

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is gone."""
        self._process.forget(self._number)
        self._process.tell(events.Closed(self._number))

    def flushed(self, link: SimulatedConnection) -> None:
        """It has taken everything that has left the broker."""
        self._process.taken(self._number, link)


class BrokerHost(CoreProcess):
    """A broker from its start to its end.

    ``sent`` is told of every frame when it is queued, ``pulled`` of every answer of the data cluster. The ``queue`` is
    for what goes to subscribers; the two links are connections of their own, with few bytes.
    """

    core: BrokerCore

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        limits: BrokerLimits | None = None,
        capacity: float = 1.0,
        location: tuple[float, float] | None = None,
        make: Callable[..., BrokerCore] = BrokerCore,
        queue: OutgoingQueue | None = None,
    ) -> None:
        core = make(name, f"ws://{name}", self._verify, limits=limits, capacity=capacity, location=location)
        super().__init__(world, name, core, events.Tick())
        self.sessions: dict[int, SimulatedConnection] = {}
        self._outlet = Outlet(world.clock, queue or OutgoingQueue())
        self._untold: dict[int, int] = {}
        self._much = (limits or BrokerLimits()).waiting_bytes // 4
        self.sent: Callable[[float, bytes], None] | None = None
        self.pulled: Callable[[float, control.Results], None] | None = None
        self._numbers = count(1)
        self._verifier: Verifier | None = None
        self._data = Uplink(self, "data", datahost.HOST, name)
        self._coordinator = Uplink(self, "coordinator", coordinatorhost.HOST, coordinatorhost.LINK)
        world.network.listen(name, self._accept)
        self._data.dial()
        self._coordinator.dial()
        self._beat()

    @property
    def linked(self) -> bool:
        """Whether it takes its links to coordinator and data cluster for open."""
        return self._coordinator.open and self._data.open

    def ask_data(self, message: control.Request | bytes) -> None:
        """Somebody else than the core asks the data cluster something, or says what cannot be read."""
        self._data.send(message)

    def told(self, message: Any) -> None:
        """Coordinator or data cluster have said something."""
        if self.pulled and isinstance(message, control.Results):
            self.pulled(self.world.clock.now, message)
        self.tell(events.Told(message))

    def taken(self, session: int, link: SimulatedConnection) -> None:
        """A connection has taken everything that has left.

        The core is told when that is much, and so in any case before it holds the connection for slow.
        """
        waiting = self._outlet.waiting(link)
        if self._untold.get(session, 0) - waiting > self._much:
            self._untold[session] = waiting
            self.tell(events.Flushed(session, waiting))

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        match action:
            case actions.Send(session, frame):
                self._send(session, frame)
            case actions.ToCoordinator(message):
                self._coordinator.send(message)
            case actions.ToData(message):
                self._data.send(message)
            case actions.SendMany(sessions, frame):
                for session in sessions:
                    self._send(session, frame)
            case actions.Close(session, code):
                if link := self.forget(session):
                    self._outlet.close(link, code)
            case actions.TrustLearned(trust):
                self._verifier = Verifier(trust)
            case actions.PublishBatch(batch):
                self._publish(batch)

    def forget(self, session: int) -> SimulatedConnection | None:
        """A connection is over."""
        self._untold.pop(session, None)
        return self.sessions.pop(session, None)

    def _send(self, session: int, frame: bytes) -> None:
        if link := self.sessions.get(session):
            self._untold[session] = self._untold.get(session, 0) + len(frame)
            self._outlet.send(link, frame)
            if self.sent:
                self.sent(self.world.clock.now, frame)

    def _publish(self, batch: int) -> None:
        """The model of the data cluster takes every record, if it can be reached."""
        outcome: events.Event = events.BatchPublished(batch)
        if not self._data.open:
            outcome = events.BatchFailed(batch, "unavailable", "the data cluster is not connected; try again later")
        self.world.clock.after(self.world.network.delay(), self.tell, outcome)

    def _accept(self, link: SimulatedConnection, purpose: str) -> AcceptedConnection | None:  # noqa: ARG002
        if self._verifier is None:
            return None
        number = next(self._numbers)
        self.sessions[number] = link
        # Only when the connection has been taken: the core may close it at once.
        self.world.clock.after(0.0, self.tell, events.Opened(number))
        return AcceptedConnection(self, number)

    def _verify(self, token: str) -> Bearer:
        assert self._verifier, "nobody is let in before"
        now = self.world.clock.now
        return Bearer.of(self._verifier.verify(token, now), now)

    def _beat(self) -> None:
        if self.alive:
            if self.world.clock.now - self._coordinator.spoke >= BEAT_SECONDS:
                self._coordinator.send(coordination.Beat())
            self.world.clock.after(BEAT_SECONDS, self._beat)

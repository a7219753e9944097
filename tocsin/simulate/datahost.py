"""The data cluster's process: drives the core of each broker's connection, and all that it does takes time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from tocsin.data.control import actions, events
from tocsin.data.control.core import ControlCore
from tocsin.data.control.pending import MOST_IDS
from tocsin.errors import BusyError, StorageError
from tocsin.model import control
from tocsin.model.control import Notice
from tocsin.model.messages import ProblemDetails
from tocsin.model.terms import Terms
from tocsin.simulate.cluster import DataClusterModel, outcome
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.process import SimulatedWorld

HOST = "data"
_REFUSALS: Final = (
    ProblemDetails(BusyError.code, "the storage is busy", retry_after=0.3),
    ProblemDetails(StorageError.code, "the disk is full"),
    ProblemDetails("internal", "a fault in the server: see its log", reference="simulated"),
)


class BrokerConnection:
    """A broker's connection: its core, what comes of the request under way, and what was sent last.

    That is numbered, and ``sending`` until it is taken, which takes longer than its way if it is ``slow``.
    """

    def __init__(self, broker: str, core: ControlCore) -> None:
        self.broker, self.core = broker, core
        self.parts: Iterator[events.Outcome] = iter(())
        self.sent, self.sending, self.slow = 0, False, False


class DataHost:
    """Serves a data cluster's state, which outlives it, to brokers.

    What an execution has found can be pulled before anybody is told of it, and those are told who hold it by then.

    Args:
        answer_seconds: what the storage takes for each step, at most.
        buffered: whether a connection takes any number of messages at once, or the next one when one has arrived.
        most_waiting: so many BE subscriptions may wait in notices for a broker.
        read_seconds: how long a broker takes to read a message, at most; with 0, it does so when it arrives.

    Attributes:
        slowness: the same for single brokers.
        refusing: the chance that the storage fails to do something, or says so although it was done.
    """

    def __init__(
        self,
        world: SimulatedWorld,
        cluster: DataClusterModel,
        answer_seconds: float = 0.005,
        buffered: bool = True,
        most_waiting: int = MOST_IDS,
        read_seconds: float = 0.0,
    ) -> None:
        self._world, self._cluster, self.answer_seconds = world, cluster, answer_seconds
        self._buffered, self._most_waiting, self.read_seconds = buffered, most_waiting, read_seconds
        self.alive = True
        self.slowness: dict[str, float] = {}
        self.refusing = 0.0
        self._untold: dict[str, deque[tuple[int, list[int]]]] = {}
        self._connections: dict[SimulatedConnection, BrokerConnection] = {}
        world.network.listen(HOST, self._accept)

    def execute(self, channel: str, chosen: Callable[[int], bool]) -> None:
        """Runs a channel once, and tells the brokers that are connected."""
        if not self.alive or channel in self._cluster.absent:
            return
        found = self._cluster.run(channel, chosen)
        self._world.trace.event(self._world.clock.now, HOST, found, channel)
        untold = self._untold.setdefault(channel, deque())
        untold.append((self._cluster.execution[channel], found))
        if len(untold) == 1:
            self._later(self._tell_holders, channel)

    def drop(self, channel: str) -> None:
        """Drops a channel, and tells the brokers that are connected."""
        if not self.alive or channel in self._cluster.absent:
            return
        notice = control.Dropped(channel, self._cluster.incarnation(channel))
        self._cluster.drop(channel)
        self._untold.pop(channel, None)
        self._notice(lambda _: notice)

    def change(self, channel: str, terms: Terms) -> None:
        """Replaces a channel by one with other terms, and tells the brokers that are connected."""
        if self.alive and channel not in self._cluster.absent:
            self._cluster.terms[channel] = terms
            self._notice(lambda _: control.Changed(channel, terms))

    def fail(self, channel: str) -> None:
        """A channel cannot be executed, which the brokers are told that hold something of it."""
        bes = self._cluster.bes_by_channel.get(channel, [])
        self._notice(
            lambda broker: control.Failing(channel, held, "no") if (held := self._held_by(broker, bes)) else None
        )

    def crash(self) -> None:
        """Ends at once; the state stays."""
        self.alive = False
        self._world.network.crash(HOST)

    def received(self, link: SimulatedConnection, message: control.Request | bytes) -> None:
        """A broker asks."""
        text = message if isinstance(message, bytes) else msgspec.json.encode(message)
        self._tell(link, events.Received(text))

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """A broker is gone; its subscriptions stay."""
        del self._connections[link]

    def flushed(self, link: SimulatedConnection) -> None:
        """A broker has what was sent to it."""
        connection = self._connections.get(link)
        if connection and not connection.slow:
            self._taken(link, connection, connection.sent)

    def _accept(self, link: SimulatedConnection, purpose: str) -> DataHost:
        self._connections[link] = BrokerConnection(purpose, ControlCore(purpose, self._cluster, self._most_waiting))
        # Only when the connection has been taken can something be sent.
        self._world.clock.after(0.0, self._tell, link, events.Opened())
        return self

    def _tell(self, link: SimulatedConnection, event: events.Event) -> None:
        """Has the core of a connection handle an event, and does what it wants."""
        todo = deque([event])
        while todo and self.alive and (connection := self._connections.get(link)):
            event = todo.popleft()
            if isinstance(event, events.Writable):
                connection.sending = False
            else:
                self._world.trace.event(self._world.clock.now, HOST, event, connection.broker)
            for action in connection.core.handle(event):
                match action:
                    case actions.Send(message):
                        todo.extend(self._send(link, connection, message))
                    case actions.CarryOut(request):
                        self._later(self._carry_out, link, connection, request)
                    case actions.ReadOn():
                        self._later(self._read, link, connection)

    def _send(
        self, link: SimulatedConnection, connection: BrokerConnection, message: control.ControlMessage
    ) -> list[events.Event]:
        """Sends a message; that it was taken, if that is known at once."""
        slowness = self.slowness.get(connection.broker, self.read_seconds)
        connection.sent, connection.sending, connection.slow = connection.sent + 1, True, bool(slowness)
        link.send(1, message)
        if slowness:
            seconds = self._world.random.random() * slowness
            self._world.clock.after(seconds, self._taken, link, connection, connection.sent)
            return []
        return [events.Writable()] if self._buffered else []

    def _taken(self, link: SimulatedConnection, connection: BrokerConnection, number: int) -> None:
        """A broker has read a message; of the last one it may have been said before."""
        if connection.sending and connection.sent == number:
            self._tell(link, events.Writable())

    def _carry_out(self, link: SimulatedConnection, connection: BrokerConnection, request: actions.Work) -> None:
        if self.alive and link in self._connections:
            connection.parts = self._cluster.carry_out(connection.broker, request)
            self._read(link, connection)

    def _read(self, link: SimulatedConnection, connection: BrokerConnection) -> None:
        """The storage does what it was told to, or the next part of that."""
        if self.alive and link in self._connections:
            refusal = self._refusal()
            done = outcome(connection.parts) if refusal is None or self._world.random.random() < 0.5 else refusal
            self._later(self._tell, link, refusal or done)

    def _refusal(self) -> events.RequestFailed | None:
        if not self.refusing or self._world.random.random() > self.refusing:
            return None
        return events.RequestFailed(self._world.random.choice(_REFUSALS))

    def _tell_holders(self, channel: str) -> None:
        """The notices of the channel's oldest execution that nobody was told of."""
        untold = self._untold.get(channel)
        if not untold:
            return
        number, found = untold.popleft()

        def notice(broker: str) -> Notice | None:
            held = self._held_by(broker, found)
            return self._cluster.notice(channel, number, held) if held else None

        self._notice(notice)
        if untold:
            self._later(self._tell_holders, channel)

    def _held_by(self, broker: str, bes: list[int]) -> list[int]:
        return [be for be in bes if broker in self._cluster.attached.get(be, ())]

    def _notice(self, notice: Callable[[str], Notice | None]) -> None:
        """Tells every broker that is connected what there is for it."""
        for link, connection in list(self._connections.items()) if self.alive else ():
            if told := notice(connection.broker):
                self._tell(link, events.Noticed(told))

    def _later(self, call: Callable[..., None], *arguments: Any) -> None:
        if self.answer_seconds:
            self._world.clock.after(self._world.random.random() * self.answer_seconds, call, *arguments)
        else:
            call(*arguments)

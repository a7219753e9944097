"""A subscriber's program: its core, its connections, and an application that takes what it is given."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tocsin.client.core import actions, events
from tocsin.client.core.core import SubscriberCore
from tocsin.client.rules import Rules
from tocsin.coordinator import answers
from tocsin.coordinator.events import RequestBroker
from tocsin.errors import TocsinError
from tocsin.model.subscriber import Held
from tocsin.simulate.coordinatorhost import Asking
from tocsin.simulate.diary import Diary
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.process import CoreProcess, SimulatedWorld


class OpenedConnection:
    """A connection to a broker."""

    def __init__(self, process: ClientHost, number: int) -> None:
        self._process, self._number = process, number

    def opened(self) -> None:
        """It stands."""
        self._process.tell(events.Opened(self._number))

    def received(self, link: SimulatedConnection, message: bytes) -> None:  # noqa: ARG002
        """The broker says something."""
        self._process.tell(events.Received(self._number, message), message)

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is over."""
        self._process.links.pop(self._number, None)
        self._process.tell(events.Lost(self._number, code))

    def flushed(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""


class ClientHost(CoreProcess):
    """A subscriber's program from its start to its end.

    ``moving`` is told when it sets out for another broker, ``refused`` when it is not to have what it wanted,
    ``slowness`` is how long the application takes with each note, at most.
    """

    core: SubscriberCore

    def __init__(
        self,
        world: SimulatedWorld,
        name: str,
        token: str,
        diary: Diary,
        rules: Rules | None = None,
        location: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(world, name, SubscriberCore(Random(world.random.random()), rules), events.Tick())
        self.diary, self.location = diary, location
        self.links: dict[int, SimulatedConnection] = {}
        self.slowness = 0.0
        self.moving: Callable[[ClientHost], None] | None = None
        self.delivered: Callable[[actions.Deliver], None] | None = None
        self.refused: Callable[[str, int], None] | None = None
        self._numbers: dict[int, int] = {}
        self._token = token

    @property
    def state(self) -> actions.ConnectionState:
        """How it is connected."""
        return self.core.state

    def start(self) -> None:
        """Goes online."""
        self.tell(events.Start(self._token))

    def crash(self) -> None:
        """Ends at once; only what the application has had is remembered."""
        super().crash()
        self.diary.crashed()

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        match action:
            case actions.Send(connection, text):
                if connection in self.links:
                    self.links[connection].send(0, text)
            case actions.Deliver():
                self._take(action)
            case actions.StateChanged(state):
                if state is actions.ConnectionState.MOVING and self.moving:
                    self.moving(self)
            case actions.Missed(subscription, first, last, epoch):
                self.diary.missed(subscription, first, last, self.core.incarnation(subscription))
                self.world.clock.after(0.0, self.tell, events.Taken(subscription, last, epoch))
            case actions.AskBroker():
                Asking(self.world, self.host, RequestBroker(0, self._token, self.location), self._located)
            case actions.Open(connection, url):
                self._open(connection, url.removeprefix("ws://"))
            case actions.Close(connection):
                if connection in self.links:
                    self.links.pop(connection).close(0)
            case actions.Confirmed(ref, held):
                self._confirmed(ref, held)
            case actions.Resumed(held):
                self.diary.begun(held.subscription, held.cursor, held.live, held.incarnation)
            case actions.RequestRefused(ref):
                if self.refused:
                    self.refused(self.host, ref)
            case actions.Ended(subscription):
                self.diary.ended(subscription)
            case actions.Unsubscribed(ref):
                self.diary.left(ref)

    def _confirmed(self, ref: int, held: Held) -> None:
        was = self._numbers.get(ref)
        if was is not None and was != held.subscription:
            self.diary.renumbered(was, held.subscription)
        self._numbers[ref] = held.subscription
        self.diary.begun(held.subscription, held.cursor, held.live, held.incarnation)

    def _take(self, action: actions.Deliver) -> None:
        subscription, note = action.subscription, action.note
        self.diary.had(subscription, note)
        if self.delivered:
            self.delivered(action)
        seconds = self.world.random.random() * self.slowness if self.slowness else 0.0
        self.world.clock.after(seconds, self.tell, events.Taken(subscription, note.e, action.epoch))

    def _open(self, connection: int, broker: str) -> None:
        peer = OpenedConnection(self, connection)
        link = self.links[connection] = self.world.network.dial(self.host, broker, "subscriber", peer)
        link.when_open = peer.opened

    def _located(self, answer: answers.Answer | TocsinError) -> None:
        found: Any = answer if isinstance(answer, answers.Located) else None
        self.tell(events.BrokerFound(found.url) if found else events.CoordinatorFailed(str(answer)))

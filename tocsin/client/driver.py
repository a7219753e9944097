"""What runs a subscriber's core: its connections, its questions to the coordinator, and its clock."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Final, Protocol

from tocsin.alarm import Alarm
from tocsin.client.coordinator import Location, UnreachableError
from tocsin.client.core import actions, events
from tocsin.client.core.core import SubscriberCore
from tocsin.client.faults import fault
from tocsin.client.rules import Rules
from tocsin.client.socket import BrokerSocket
from tocsin.errors import ForbiddenError, NotFoundError, TocsinError, UnauthorizedError

# With these the coordinator would never say anything else.
_FINAL: Final = (UnauthorizedError, ForbiddenError, NotFoundError)


class Coordinator(Protocol):
    """What a subscriber asks the coordinator, and whom it trusts."""

    def trust(self) -> ssl.SSLContext: ...

    async def locate(self, token: str, location: Location | None) -> str: ...

    async def unregister(self, token: str) -> None: ...


class Socket(Protocol):
    """A connection to a broker: what happens on it is told until ``task`` ends."""

    task: asyncio.Task[None]

    def send(self, text: bytes) -> None: ...

    def close(self) -> None: ...


class Dial(Protocol):
    """Opens a connection to a broker."""

    def __call__(
        self,
        number: int,
        url: str,
        rules: Rules,
        tell: Callable[[events.Event], None],
        complain: Callable[[actions.Troubled], None],
        trust: Callable[[], ssl.SSLContext],
    ) -> Socket: ...


@dataclass(frozen=True)
class ClientEnvironment:
    """What a driver reaches brokers by, and draws its pauses from; a test's are its own (:mod:`tocsin.testing`)."""

    dial: Dial = BrokerSocket
    random: Random = field(default_factory=SystemRandom)


class SubscriberDriver:
    """A core with the world around it, on the event loop it is started in.

    It carries out what the core wants of the world, and passes the rest on to ``act``. ``fail`` is called once with
    what ends it for good: a token that is not accepted, another program under the same name, no coordinator at the
    very first question (a wrong URL, more often than not; later ones are asked again for ever), or a fault in here.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        token: str,
        location: Location | None,
        rules: Rules,
        act: Callable[[actions.Action], None],
        fail: Callable[[Exception], None],
        environment: ClientEnvironment,
    ) -> None:
        self._coordinator, self._token, self._location, self._rules = coordinator, token, location, rules
        self._act, self._fail = act, fail
        self._core, self._dial = SubscriberCore(environment.random, rules), environment.dial
        self._loop = asyncio.get_running_loop()
        self._sockets: dict[int, Socket] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._questions: set[asyncio.Task[None]] = set()
        self._alarm = Alarm(self._tick)
        self._reached = False
        self._over = False

    def start(self) -> None:
        """Begins to connect."""
        self.handle(events.Start(self._token))

    def handle(self, event: events.Event) -> None:
        """Has the core handle an event of the application. Raises TypeError for what cannot be written as JSON."""
        for action in self._core.handle(self._loop.time(), event):
            self._do(action)
        self._set_timer()

    async def stop(self) -> None:
        """Logs out and closes everything, in a few seconds at most even if nobody answers."""
        if not self._over:
            self._tell(events.Stop())
        self._end()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self) -> None:
        self._over = True
        self._alarm.cancel()
        for socket in self._sockets.values():
            socket.close()
        for question in self._questions:
            question.cancel()

    def _break(self, error: Exception) -> None:
        if not self._over:
            self._end()
            self._fail(error)

    def _tell(self, event: events.Event) -> None:
        """Has the core handle an event of the world; a fault in that is the end, and not silent."""
        if self._over:
            return
        try:
            self.handle(event)
        except Exception as error:
            self._break(error)

    def _do(self, action: actions.Action) -> None:
        match action:
            case actions.Send(connection, text):
                if socket := self._sockets.get(connection):
                    socket.send(text)
            case actions.Deliver() | actions.Published():
                # Nearly all there is, so it is looked for before the others.
                self._act(action)
            case actions.Open(connection, url):
                trust = self._coordinator.trust
                socket = self._dial(connection, url, self._rules, self._tell, self._act, trust)
                self._sockets[connection] = socket
                self._keep(socket.task)
            case actions.Close(connection):
                if socket := self._sockets.pop(connection, None):
                    socket.close()
            case actions.AskBroker():
                self._keep(question := asyncio.create_task(self._ask(), name="tocsin coordinator"))
                self._questions.add(question)
            case actions.Failed(code, message):
                self._break(fault(code, message))
            case _:
                self._act(action)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._questions.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._break(error)

    async def _ask(self) -> None:
        try:
            url = await self._coordinator.locate(self._token, self._location)
        except _FINAL as error:
            self._break(error)
        except TocsinError as error:
            if isinstance(error, UnreachableError) and not self._reached:
                self._break(error)
            self._reached = True
            self._tell(events.CoordinatorFailed(str(error)))
        else:
            self._reached = True
            self._tell(events.BrokerFound(url))

    def _set_timer(self) -> None:
        wake = self._core.wake()
        if wake is not None and not self._over:
            self._alarm.set(wake)

    def _tick(self) -> None:
        self._tell(events.Tick())

"""How a program in a virtual network reaches brokers and coordinator: by messages in memory, on a simulated network.

These stand where the client library has its WebSocket and its HTTP; all else of it is the one that is shipped.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from tocsin.client.coordinator import Location
from tocsin.client.core.actions import Troubled
from tocsin.client.core.events import Event, Lost, Opened, Received
from tocsin.client.rules import Rules
from tocsin.coordinator import answers, events
from tocsin.errors import TocsinError, UnavailableError
from tocsin.simulate.coordinatorhost import Asking
from tocsin.simulate.network import SimulatedConnection
from tocsin.simulate.process import SimulatedWorld

Then = Callable[[answers.Answer | TocsinError], None]


class Program:
    """One run of a subscriber's program, on a host of its own. Once it has crashed, nothing gets in or out."""

    def __init__(self, world: SimulatedWorld, host: str) -> None:
        self.world, self.host, self.alive = world, host, True

    def crash(self) -> None:
        """Ends at once, as far as anybody else can see."""
        self.alive = False
        self.world.network.crash(self.host)


class MemorySocket:
    """A connection to a broker, for a core that knows it by a number."""

    def __init__(
        self,
        program: Program,
        number: int,
        url: str,
        rules: Rules,  # noqa: ARG002
        tell: Callable[[Event], None],
        complain: Callable[[Troubled], None],  # noqa: ARG002
        trust: Callable[[], ssl.SSLContext],  # noqa: ARG002
    ) -> None:
        self._number, self._tell = number, tell
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._link: SimulatedConnection | None = None
        if program.alive:
            self._link = program.world.network.dial(program.host, url.removeprefix("ws://"), "subscriber", self)
            self._link.when_open = lambda: tell(Opened(number))
        self.task = asyncio.create_task(self._wait(), name=f"connection {number} of {program.host}")

    def send(self, text: bytes) -> None:
        """Sends a message."""
        if self._link:
            self._link.send(0, text)

    def close(self) -> None:
        """Closes it, after what was sent; nothing is told any more."""
        if self._link:
            self._link.close(0)
        self.task.cancel()

    def received(self, link: SimulatedConnection, message: bytes) -> None:  # noqa: ARG002
        """The broker says something."""
        self._tell(Received(self._number, message))

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is over."""
        if not self._over.done():
            self._over.set_result(code)

    def flushed(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""

    async def _wait(self) -> None:
        self._tell(Lost(self._number, await self._over))


class MemoryCoordinator:
    """What a subscriber asks the coordinator, which has ``seconds`` to answer."""

    def __init__(self, program: Program, seconds: float) -> None:
        self._program, self._seconds = program, seconds

    def trust(self) -> ssl.SSLContext:
        """Nothing here is encrypted."""
        raise NotImplementedError

    async def locate(self, token: str, location: Location | None) -> str:
        """The URL of the broker that is ready for the token's subscriber, who is at ``location``."""
        answer = await self._ask(events.RequestBroker(0, token, location))
        assert isinstance(answer, answers.Located)
        return answer.url

    async def unregister(self, token: str) -> None:
        """The token's subscriber leaves for good."""
        await self._ask(events.Unregister(0, token))

    async def _ask(self, request: events.Request) -> answers.Answer:
        def ask(then: Then) -> None:
            if self._program.alive:
                Asking(self._program.world, self._program.host, request, then)

        return await wait_for_answer(ask, self._seconds)


async def wait_for_answer(ask: Callable[[Then], None], seconds: float) -> answers.Answer:
    """What ``ask`` is answered; raises the error that is the answer, and UnavailableError if there is none."""
    reply: asyncio.Future[answers.Answer | TocsinError] = asyncio.get_running_loop().create_future()

    def settle(answer: answers.Answer | TocsinError) -> None:
        if not reply.done():
            reply.set_result(answer)

    ask(settle)
    try:
        answer = await asyncio.wait_for(reply, seconds)
    except TimeoutError:
        raise UnavailableError("no answer from the coordinator") from None
    if type(answer) is TocsinError:
        raise UnavailableError(str(answer))
    if isinstance(answer, TocsinError):
        raise answer
    return answer

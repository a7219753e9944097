"""Brokers as a coordinator sees them: a bare link for odd words, and the real core of a broker for right ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

import httpx
import msgspec
import websockets
from websockets.asyncio.client import ClientConnection, connect

from tests.broker.world import DataClusterModel
from tests.coordinator.server.running import WAIT_SECONDS, Running
from tests.waiting import until_async
from tocsin.broker import actions, events
from tocsin.broker.core import BrokerCore
from tocsin.broker.holdings import Bearer
from tocsin.coordinator.tokens import SigningKey, Verifier
from tocsin.model import control, coordination, subscriber
from tocsin.model.trust import Trust

_FROM_COORDINATOR: msgspec.json.Decoder[coordination.FromCoordinator] = msgspec.json.Decoder(
    coordination.FromCoordinator
)


class Wire:
    """A link on which a test says what it likes."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, message: coordination.FromBroker | str | bytes) -> None:
        """Sends a message, or what is none."""
        await self.connection.send(message if isinstance(message, str | bytes) else _text(message))

    async def hear(self) -> coordination.FromCoordinator:
        """The next message."""
        async with asyncio.timeout(30):
            return _FROM_COORDINATOR.decode(await self.connection.recv())

    async def closed(self) -> int:
        """The code with which it was closed."""
        async with asyncio.timeout(30):
            await self.connection.wait_closed()
        return self.connection.close_code or 0


@asynccontextmanager
async def wire(coordinator: Running, token: str, **options: Any) -> AsyncIterator[Wire]:
    """A link with this token; ``options`` are further ones of ``connect``."""
    url = f"{coordinator.url.replace('http', 'ws', 1)}/link"
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(url, additional_headers=headers, proxy=None, **options) as connection:
        yield Wire(connection)


class LiveBroker:
    """The core of a broker on a real link. Its subscribers are sessions that a test opens."""

    def __init__(self, name: str, data: DataClusterModel) -> None:
        self.name, self.verifier = name, Verifier(Trust())
        self.core = BrokerCore(name, f"ws://{name}.example.org/subscriber", self._verified)
        self.told: dict[int, list[subscriber.Answer]] = {}
        self._data, self._sessions = data, count(1)
        self._wire: Wire | None = None
        self._outgoing: asyncio.Queue[coordination.FromBroker] = asyncio.Queue()

    @asynccontextmanager
    async def linked(self, coordinator: Running) -> AsyncIterator[LiveBroker]:
        """Lives while it is entered, and is gone then as after a crash."""
        async with wire(coordinator, coordinator.token(self.name, "broker")) as link:
            self.handle(events.Connected("data"))
            self.handle(events.Connected("coordinator"))
            tasks = [asyncio.create_task(part) for part in (self._listen(link), self._speak(link), self._tick())]
            try:
                await until_async(lambda: self.verifier.trust.keys, "keys")
                yield self
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                self.handle(events.Lost("coordinator"))
                link.connection.transport.abort()

    def handle(self, event: events.Event) -> None:
        """Tells the core."""
        for action in self.core.handle(time.time(), event):
            self._do(action)

    async def login(self, token: str) -> int:
        """A subscriber connects; its session once it is welcome."""
        session = next(self._sessions)
        self.told[session] = []
        self.handle(events.Opened(session))
        self.say(session, subscriber.Login(token))
        await self.answer(session, subscriber.Welcome)
        return session

    def say(self, session: int, message: subscriber.Request) -> None:
        """A subscriber says something."""
        self.handle(events.Received(session, msgspec.json.encode(message)))

    async def answer(self, session: int, kind: type[Any]) -> Any:
        """The first answer of a kind, when it comes."""
        return await until_async(
            lambda: next((said for said in self.told[session] if isinstance(said, kind)), None), "answer"
        )

    def report(self, load: coordination.Load) -> None:
        """Tells the coordinator how much there is to do."""
        self._outgoing.put_nowait(load)

    def _verified(self, token: str) -> Bearer:
        return Bearer.of(self.verifier.verify(token, time.time()), time.time())

    def _do(self, action: actions.Action) -> None:
        match action:
            case actions.Send(session, frame):
                said = msgspec.json.decode(frame, type=subscriber.Answer)
                self.told[session].append(said)
            case actions.ToCoordinator(message):
                self._outgoing.put_nowait(message)
            case actions.ToData(message):
                answer = self._data.answer(self.name, message)
                assert isinstance(answer, control.Attached | control.Detached | control.Results | control.Pong)
                self.handle(events.Told(answer))
            case actions.TrustLearned(trust):
                self.verifier = Verifier(trust)

    async def _listen(self, link: Wire) -> None:
        while True:
            try:
                self.handle(events.Told(await link.hear()))
            except websockets.ConnectionClosed:
                self.handle(events.Lost("coordinator"))
                return

    async def _speak(self, link: Wire) -> None:
        while True:
            try:
                async with asyncio.timeout(1):
                    message = await self._outgoing.get()
            except TimeoutError:
                message = coordination.Beat()
            await link.say(message)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            self.handle(events.Tick())


@asynccontextmanager
async def two_brokers(
    url: str, key: SigningKey, data: DataClusterModel
) -> AsyncIterator[tuple[Running, dict[str, LiveBroker]]]:
    """A coordinator that runs elsewhere, and two brokers that know nothing of the past."""
    async with (
        httpx.AsyncClient(timeout=WAIT_SECONDS, trust_env=False, verify=False) as http,
        AsyncExitStack() as stack,
    ):
        coordinator = Running(url, key, http)
        yield (
            coordinator,
            {
                name: await stack.enter_async_context(LiveBroker(name, data).linked(coordinator))
                for name in ("north", "south")
            },
        )


def _text(message: coordination.FromBroker) -> str:
    return msgspec.json.encode(message).decode()

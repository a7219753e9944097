"""A broker's real server, with a real coordinator and the data cluster's real server on a cluster in memory.

All run in the test's own event loop, on free ports. Each is stopped by the signal that stops a process, the last
started first.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tests.running import running
from tests.waiting import until_async
from tocsin.broker.server import serve as broker
from tocsin.coordinator.server import serve as coordinator
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.tokens import Claims
from tocsin.data.server import serve as data
from tocsin.settings import BrokerSettings, CoordinatorSettings, DataSettings, Settings

SECONDS = 20.0
STATEMENTS = """
CREATE DATASET Places (userId STRING, x DOUBLE, y DOUBLE) PRIMARY KEY userId;
CREATE FEED places INTO Places WITH userId FROM SUBSCRIBER FOR SUBSCRIBERS;
CREATE FEED alarms INTO Places;
CREATE CONTINUOUS CHANNEL Of(event STRING) AS SELECT * FROM Places;
"""


class Client:
    """A subscriber's end of a connection, which reads only when told to."""

    def __init__(self, connection: ClientConnection) -> None:
        self.socket = connection

    async def send(self, **message: Any) -> None:
        await self.socket.send(msgspec.json.encode(message).decode())

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(SECONDS):
            answer: dict[str, Any] = msgspec.json.decode(await self.socket.recv())
        return answer

    async def ask(self, **message: Any) -> dict[str, Any]:
        """The answer to a message, with notes before it left out."""
        await self.send(**message)
        while (answer := await self.receive())["type"] == "notes":
            pass
        return answer

    async def end(self) -> tuple[list[dict[str, Any]], int]:
        """Everything that still comes, and the code of the close."""
        answers = []
        try:
            while True:
                answers.append(await self.receive())
        except ConnectionClosed:
            return answers, self.socket.close_code or 0


@dataclass
class World:
    """A whole network with one broker. ``settings`` are the broker's.

    With ``files`` all three servers have the certificate in them, and the broker trusts the authority ``ca``.
    """

    directory: Path
    settings: dict[str, Any] = field(default_factory=dict)
    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    store: MemoryStore = field(default_factory=MemoryStore)
    coordinator: str = ""
    data: str = ""
    broker: str = ""
    verify: ssl.SSLContext | bool = False
    files: dict[str, Any] = field(default_factory=dict)
    ca: str = ""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.calls = await stack.enter_async_context(
                httpx.AsyncClient(headers={"Authorization": "Bearer demo"}, timeout=SECONDS, verify=self.verify)
            )
            self.coordinator = await stack.enter_async_context(self.running_coordinator())
            self.data = await stack.enter_async_context(self.running_data())
            self.broker = await stack.enter_async_context(self.running_broker())
            await self.linked()
            await self.cluster.apply(STATEMENTS, None)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def running_coordinator(self, port: int = 0) -> Any:
        given = {"directory": self.directory / "coordinator", "placement": "round-robin", **self.files}
        section = CoordinatorSettings(port=port, **given)
        return running(lambda say: coordinator.run(section, demo=True, listening=say, store=self.store))

    def running_data(self, port: int = 0) -> Any:
        settings = Settings(data=DataSettings(directory=self.directory / "data", port=port, **self.files))
        return running(lambda say: data.run(self.cluster, MemoryTokens(), settings, listening=say))

    def running_broker(self) -> Any:
        given = {"port": 0, "token": "demo", "data_token": "admin", "name": "north"}
        section = BrokerSettings(
            **{**given, "coordinator": self.coordinator, "data": self.data, **self.files, **self.settings}
        )
        listener = broker.bind(section)
        # So that what is not read soon waits in the broker, and not in the kernel.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        return running(lambda say: broker.run(section, ca=self.ca, listener=listener, listening=say))

    async def linked(self, **wanted: Any) -> None:
        """Until the broker says that its links are so."""
        wanted = wanted or {"status": "ok", "coordinator": True, "data": True}

        async def is_so() -> bool:
            answer: dict[str, Any] = (await self.calls.get(f"{self.broker}/health")).json()
            return answer.items() >= wanted.items()

        await until_async(is_so, f"health with {wanted}")

    async def token(self, name: str) -> str:
        """The token of a subscriber who is to come to the broker."""
        answer = await self.calls.post(f"{self.coordinator}/users", json={"name": name})
        token: str = answer.json()["token"]
        headers = {"Authorization": f"Bearer {token}"}

        async def is_placed() -> bool:
            return (await self.calls.get(f"{self.coordinator}/broker", headers=headers)).is_success

        await until_async(is_placed, f"place for {name}")
        return token

    @property
    def url(self) -> str:
        """Where subscribers connect."""
        return self.broker.replace("http", "ws", 1) + "/subscriber"

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        """A connection that has not logged in."""
        async with connect(self.url, proxy=None, close_timeout=1, **options) as connection:
            yield Client(connection)

    @asynccontextmanager
    async def member(self, name: str, **options: Any) -> AsyncIterator[Client]:
        """A connection of a subscriber who is welcome."""
        token = await self.token(name)
        async with self.client(**options) as client:
            assert (await client.ask(type="login", token=token))["type"] == "welcome"
            yield client

    async def subscription(self, client: Client, event: str) -> int:
        """The number of a subscription that the client gets."""
        answer = await client.ask(type="subscribe", id=1, channel="Of", parameters={"event": event})
        number: int = answer["held"]["subscription"]
        return number

    def execute(self, execution: int, be: int, payload: bytes = b"[{}]") -> None:
        """Lets an execution find something, and the broker be told."""
        self.cluster.find(execution, be, payload)
        self.cluster.execute("north", "Of", execution, [be])

    async def status(self) -> dict[str, Any]:
        """What the broker tells operators."""
        answer = await self.calls.get(f"{self.broker}/status", headers=self.operator())
        status: dict[str, Any] = answer.json()
        return status

    def operator(self) -> dict[str, str]:
        """The header of an operator."""
        return {"Authorization": f"Bearer {self.store.keyring().signing.sign(Claims('root', 'operator', 1e12))}"}

    async def still_serves(self) -> None:
        """A subscriber comes, is served and goes."""
        async with self.member("witness") as client:
            be = await self.subscription(client, "witness")
            execution = max((one.execution for one in self.cluster.found), default=0) + 1
            self.execute(execution, be)
            assert (await client.receive())["notes"] == [{"s": be, "e": execution, "payload": [{}]}]

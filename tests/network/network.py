"""A whole live network of real processes, with a proxy on every way between them.

::

    subscribers ── door ── coordinator ── up ── broker ── out ── data cluster
         └────────────────── into ────────────────┘
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from tests.e2e.process import DataProcess
from tests.network.process import ServerProcess
from tests.network.proxy import Proxy, proxy
from tests.ports import free_port
from tests.waiting import until_async

OPERATOR: Final = "demo"


@dataclass
class Broker:
    """A broker's process, and the ways ``into`` it from subscribers, ``up`` to the coordinator, ``out`` for data."""

    process: ServerProcess
    into: Proxy
    up: Proxy
    out: Proxy


class Network:
    """A coordinator and brokers on a data cluster that is there already.

    Args:
        directory: where logs and the coordinator's store are.
        word: what the names of brokers begin with for the data cluster, which knows those of other networks, too.
        settings: of the coordinator, by their keys.
        data_urls: by which brokers reach the data cluster, where that is not through a proxy.
    """

    def __init__(
        self,
        data: DataProcess,
        directory: Path,
        word: str,
        settings: dict[str, object] | None = None,
        data_urls: str = "",
    ) -> None:
        self.data, self.directory, self._word, self._data_urls = data, directory, word, data_urls
        self.brokers: dict[str, Broker] = {}
        port = free_port()
        given = {"coordinator.port": port, "coordinator.directory": directory / "coordinator", **(settings or {})}
        command = ["coordinator", "--demo-token"]
        self.coordinator = ServerProcess("coordinator", command, given, port, directory / "coordinator.log")
        headers = {"Authorization": f"Bearer {OPERATOR}"}
        self._client = httpx.AsyncClient(
            base_url=self.coordinator.url, headers=headers, trust_env=False, verify=False, timeout=30
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.door = await self._stack.enter_async_context(proxy(self.coordinator.port))
        await self._stack.enter_async_context(self._client)
        self._stack.callback(self.coordinator.close)
        await self.coordinator.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """The coordinator as subscribers know it."""
        return f"http://127.0.0.1:{self.door.port}"

    def full_names(self) -> list[str]:
        """The brokers' names, as the coordinator and the data cluster know them."""
        return [self._full(name) for name in self.brokers]

    def processes(self) -> list[ServerProcess]:
        """Everything that was started here."""
        return [self.coordinator, *(broker.process for broker in self.brokers.values())]

    async def add(self, *names: str) -> None:
        """Starts brokers, and waits until the coordinator knows them as living."""
        for name in names:
            self.brokers[name] = await self._broker(name)
            self._stack.callback(self.brokers[name].process.close)
            self.brokers[name].process.spawn()
        for name in names:
            await self.brokers[name].process.listening()
            await self.becomes(name, "serving", "joining")

    async def becomes(self, name: str, *states: str) -> None:
        """Waits until the coordinator says that a broker is in one of these states."""

        async def is_so() -> bool:
            return (await self.broker(name))["state"] in states

        await until_async(is_so, f"{name} that is {' or '.join(states)}")

    async def status(self) -> dict[str, Any]:
        """What the coordinator says of itself."""
        answer = await self._client.get("/status")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def broker(self, name: str) -> dict[str, Any]:
        """What the coordinator says of a broker."""
        brokers = (await self.status())["brokers"]
        return next((broker for broker in brokers if broker["name"] == self._full(name)), {"state": "unknown"})

    async def fullest(self) -> str:
        """The broker with most subscribers."""
        brokers = {broker["name"]: broker["subscribers"] for broker in (await self.status())["brokers"]}
        return max(self.brokers, key=lambda name: brokers[self._full(name)])

    async def drain(self, name: str, on: bool = True) -> None:
        """Has a broker emptied, or no longer."""
        answer = await self._client.put(f"/brokers/{self._full(name)}/draining", json={"on": on})
        assert answer.is_success, answer.text

    async def balance(self, on: bool) -> None:
        """Has the coordinator move people by itself, or not."""
        answer = await self._client.put("/balancing", json={"on": on})
        assert answer.is_success, answer.text

    async def emptied(self, name: str) -> None:
        """Waits until nobody is on a broker."""

        async def empty() -> bool:
            return bool((await self.broker(name))["subscribers"] == 0)

        await until_async(empty, f"end of the draining of {name}")

    async def all_present(self) -> None:
        """Waits until the coordinator knows all subscribers of every broker to be connected there, and nobody else."""

        async def right() -> bool:
            return all(broker["online"] == broker["subscribers"] for broker in (await self.status())["brokers"])

        await until_async(right, "subscribers that are all connected where they belong")

    async def register(self, name: str) -> str:
        """Makes a subscriber known; its token."""
        answer = await self._client.post("/users", json={"name": name})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    def _full(self, name: str) -> str:
        return f"{self._word}-{name}"

    async def _broker(self, name: str) -> Broker:
        port = free_port()
        enter = self._stack.enter_async_context
        into, up = await enter(proxy(port)), await enter(proxy(self.coordinator.port))
        out = await enter(proxy(self.data.port))
        settings = {
            "broker.name": self._full(name),
            "broker.port": port,
            "broker.url": f"ws://127.0.0.1:{into.port}/subscriber",
            "broker.coordinator": f"http://127.0.0.1:{up.port}",
            "broker.data": self._data_urls or f"http://127.0.0.1:{out.port}",
            "broker.token": OPERATOR,
            "broker.data_token": "demo",
            "broker.ping_seconds": 2,
        }
        process = ServerProcess(name, ["broker"], settings, port, self.directory / f"{name}.log")
        return Broker(process, into, up, out)

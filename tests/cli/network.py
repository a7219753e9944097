"""A coordinator in a process of its own, as ``tocsin coordinator`` runs it, with two brokers on real links."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal

from tests.broker.world import DataClusterModel
from tests.coordinator.server.live import LiveBroker, two_brokers
from tests.coordinator.server.running import Running
from tests.network.process import ServerProcess
from tests.ports import free_port
from tests.waiting import until_async
from tocsin.broker import events
from tocsin.coordinator.store.sqlite import SqliteStore
from tocsin.model import subscriber
from tocsin.model.coordination import Load

SETTINGS: Final[dict[str, object]] = {
    "interval_seconds": 1_000,
    "stale_after_seconds": 1_000,
    # A move that takes too long is made again at the next look at the loads only, which does not come here.
    "preparing_seconds": 60,
    "placement": "round-robin",
}


@dataclass
class Network:
    """Called from the test's thread; the brokers live in another."""

    url: str
    _portal: BlockingPortal
    _coordinator: Running
    _brokers: dict[str, LiveBroker]

    def populate(self, subscribers: int) -> None:
        """Subscribers come, subscribe and go offline; those on north are a hundred times heavier."""
        self._portal.call(self._populate, subscribers)

    def register(self, name: str) -> str:
        """The token of a new subscriber."""
        return self._portal.call(self._coordinator.subscriber, name)

    def status(self) -> dict[str, Any]:
        """How things stand."""
        return self._portal.call(self._coordinator.status)

    async def _populate(self, subscribers: int) -> None:
        rates: dict[str, dict[int, float]] = {name: {} for name in self._brokers}
        for number in range(subscribers):
            token = await self._coordinator.subscriber(f"s{number}")
            answer = await self._coordinator.call("GET", "/broker", token)
            name = answer.json()["broker"]
            rates[name][await _subscribed(self._brokers[name], token, number)] = 1e5 if name == "north" else 1e3
        for name, theirs in rates.items():
            total = sum(theirs.values())
            self._brokers[name].report(Load(total, total, theirs))
        await until_async(self._loaded, "load")

    async def _loaded(self) -> bool:
        brokers = (await self._coordinator.status())["brokers"]
        return all(broker["load"] > 0 and broker["online"] == 0 for broker in brokers)


async def _subscribed(broker: LiveBroker, token: str, value: int) -> int:
    session = await broker.login(token)
    broker.say(session, subscriber.Subscribe(1, "c", {"value": value}))
    held = (await broker.answer(session, subscriber.Subscribed)).held
    broker.handle(events.Closed(session))
    return int(held.subscription)


@contextmanager
def network(directory: Path) -> Iterator[Network]:
    """With the brokers north and south, nobody on them, and the demo token."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_running(directory)) as parts:
        yield Network(parts[0].url, portal, *parts)


@asynccontextmanager
async def _running(directory: Path) -> AsyncIterator[tuple[Running, dict[str, LiveBroker]]]:
    port = free_port()
    settings = {"directory": directory / "coordinator", "port": port, **SETTINGS}
    keyed = {f"coordinator.{key}": value for key, value in settings.items()}
    process = ServerProcess("coordinator", ("coordinator", "--demo-token"), keyed, port, directory / "log")
    try:
        await process.start()
        with closing(SqliteStore(directory / "coordinator" / "coordinator.sqlite")) as store:
            key = store.keyring().signing
        async with two_brokers(process.url, key, DataClusterModel()) as parts:
            yield parts
        assert await process.terminate() == 0
    finally:
        process.close()

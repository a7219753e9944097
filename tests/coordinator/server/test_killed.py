"""A real ``tocsin coordinator``, killed with -9 and started again: what it said still holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.broker.world import DataClusterModel
from tests.coordinator.server.live import LiveBroker, two_brokers
from tests.coordinator.server.running import Running
from tests.network.process import ServerProcess
from tests.ports import free_port
from tests.postgresql import PostgresqlServer
from tocsin.coordinator.store.opening import open_store
from tocsin.model import subscriber
from tocsin.settings.coordinator import CoordinatorSettings


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    """The setting ``coordinator.store``."""
    if request.param == "sqlite":
        return ""
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    return server.database()


@pytest.mark.process
async def test_tokens_places_and_subscriptions_outlive_a_kill(store: str, tmp_path: Path) -> None:
    process, data = _process(store, tmp_path), DataClusterModel()
    homes, tokens, held = dict[str, str](), dict[str, str](), dict[str, int]()
    try:
        async with _network(process, store, tmp_path, data) as (coordinator, brokers):
            for name in ("ann", "bob", "eve"):
                tokens[name] = await coordinator.subscriber(name)
                homes[name] = await _located(coordinator, tokens[name])
                held[name] = await _subscribed(brokers[homes[name]], tokens[name])
            process.kill()
        async with _network(process, store, tmp_path, data) as (coordinator, brokers):
            for name, token in tokens.items():
                assert await _located(coordinator, token) == homes[name]
                session = await brokers[homes[name]].login(token)
                welcome = await brokers[homes[name]].answer(session, subscriber.Welcome)
                assert [each.subscription for each in welcome.subscriptions] == [held[name]]
        assert await process.terminate() == 0
    finally:
        process.close()


def _process(store: str, directory: Path) -> ServerProcess:
    port = free_port()
    settings = {"port": port, "directory": directory, "placement": "round-robin", "store": store}
    keyed = {f"coordinator.{key}": value for key, value in settings.items()}
    return ServerProcess("coordinator", ("coordinator",), keyed, port, directory / "log")


@asynccontextmanager
async def _network(
    process: ServerProcess, store: str, directory: Path, data: DataClusterModel
) -> AsyncIterator[tuple[Running, dict[str, LiveBroker]]]:
    """The coordinator, started, with two brokers that know nothing of the past."""
    await process.start()
    with closing(open_store(CoordinatorSettings(directory=directory, store=store))) as kept:
        key = kept.keyring().signing
    async with two_brokers(process.url, key, data) as parts:
        yield parts


async def _located(coordinator: Running, token: str) -> str:
    answer = await coordinator.call("GET", "/broker", token)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["broker"])


async def _subscribed(broker: LiveBroker, token: str) -> int:
    session = await broker.login(token)
    broker.say(session, subscriber.Subscribe(1, "c", {"value": 1}))
    return int((await broker.answer(session, subscriber.Subscribed)).held.subscription)

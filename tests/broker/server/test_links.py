"""The links come back by themselves, and what was found meanwhile is delivered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests.broker.server.world import SECONDS, STATEMENTS, World
from tests.waiting import until_async
from tocsin.broker.backoff import FIRST, Backoff
from tocsin.broker.server.serve import run
from tocsin.coordinator.tokens import Claims
from tocsin.errors import SettingsError
from tocsin.settings import BrokerSettings


def port(url: str) -> int:
    return urlsplit(url).port or 0


@asynccontextmanager
async def unstarted(directory: Path) -> AsyncIterator[tuple[World, AsyncExitStack]]:
    """A world whose servers a test starts itself; what it leaves to the stack is stopped at the end."""
    world = World(directory)
    await world.cluster.apply(STATEMENTS, None)
    async with AsyncExitStack() as stack:
        world.calls = await stack.enter_async_context(
            httpx.AsyncClient(headers={"Authorization": "Bearer demo"}, timeout=SECONDS, verify=False)
        )
        yield world, stack


async def test_a_data_cluster_that_comes_late_and_goes_is_dialled_again(tmp_path: Path) -> None:
    async with unstarted(tmp_path) as (world, stack):
        world.coordinator = await stack.enter_async_context(world.running_coordinator())
        async with world.running_data() as world.data:
            at = port(world.data)
        world.broker = await stack.enter_async_context(world.running_broker())
        await world.linked(status="degraded", coordinator=True, data=False)
        async with world.running_data(at):
            await world.linked()
            async with world.member("ann") as ann:
                be = await world.subscription(ann, "flood")
        await world.linked(data=False)
        world.cluster.find(1, be, b"[1]")
        async with world.running_data(at):
            await world.linked()
            async with world.client() as again:
                await again.ask(type="login", token=await world.token("ann"))
                assert (await again.receive())["notes"] == [{"s": be, "e": 1, "payload": [1]}]


async def test_of_several_data_clusters_whichever_answers_is_dialled(tmp_path: Path) -> None:
    async with unstarted(tmp_path) as (world, stack):
        world.coordinator = await stack.enter_async_context(world.running_coordinator())
        async with world.running_data() as first, world.running_data() as second:
            world.data = f"{first}, {second}"
        world.broker = await stack.enter_async_context(world.running_broker())
        for url in (second, first, second):
            await world.linked(data=False)
            async with world.running_data(port(url)):
                await world.linked()
                async with world.member("ann") as ann:
                    await world.subscription(ann, "flood")


async def test_subscribers_are_served_while_the_coordinator_is_away(tmp_path: Path) -> None:
    async with unstarted(tmp_path) as (world, stack):
        world.data = await stack.enter_async_context(world.running_data())
        async with world.running_coordinator() as world.coordinator:
            at = port(world.coordinator)
        world.broker = await stack.enter_async_context(world.running_broker())
        await world.linked(status="starting")
        async with AsyncExitStack() as members:
            async with world.running_coordinator(at):
                await world.linked()
                ann = await members.enter_async_context(world.member("ann"))
                be = await world.subscription(ann, "flood")
            await world.linked(status="degraded", coordinator=False)
            world.execute(1, be)
            assert (await ann.receive())["notes"][0]["e"] == 1
            async with world.running_coordinator(at):
                await world.linked()
                await world.subscription(ann, "fire")


async def test_a_broker_with_anothers_token_dials_ever_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def after(self: Backoff, lasted: float) -> float:
        waits.append(told(self, lasted))
        return waits[-1]

    told = Backoff.after
    monkeypatch.setattr(Backoff, "after", after)
    world = World(tmp_path)
    world.settings = {"token": world.store.keyring().signing.sign(Claims("south", "broker", 1e12))}
    async with AsyncExitStack() as stack:
        world.coordinator = await stack.enter_async_context(world.running_coordinator())
        world.data = await stack.enter_async_context(world.running_data())
        await stack.enter_async_context(world.running_broker())
        await until_async(lambda: len(waits) > 4, "more attempts")
    assert waits == sorted(waits)
    assert waits[4] > 8 * FIRST / 2


async def test_a_broker_that_stops_tells_its_peers_that_it_goes_and_of_no_fault(tmp_path: Path) -> None:
    codes: asyncio.Queue[int | None] = asyncio.Queue()
    opened = asyncio.Event()

    async def coordinator(socket: ServerConnection) -> None:
        opened.set()
        await socket.wait_closed()
        codes.put_nowait(socket.close_code)

    world = World(tmp_path)
    async with serve(coordinator, "127.0.0.1", 0) as server, world.running_data() as world.data:
        world.coordinator = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        async with world.running_broker():
            await opened.wait()
        assert await codes.get() == 1001


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"token": ""}, "broker.token is empty"),
        ({"data_token": ""}, "broker.data_token is empty"),
        ({"location": [1.0]}, "broker.location = [1.0] is not allowed"),
        ({"coordinator": "localhost:8700"}, "broker.coordinator = localhost:8700 is not allowed"),
        ({"tls_certificate": "nowhere.pem"}, "broker.tls_certificate = nowhere.pem cannot be read: No such file"),
        ({"tls_key": "nowhere.pem"}, "broker.tls_key is set, but not broker.tls_certificate"),
        ({"tls_certificate": __file__}, "must be PEM files"),
    ],
)
async def test_a_broker_that_cannot_begin_says_why(given: dict[str, object], sentence: str) -> None:
    section = BrokerSettings(**{"port": 0, "token": "t", "data_token": "t", **given})  # type: ignore[arg-type]
    with pytest.raises(SettingsError) as refused:
        await run(section)
    assert sentence in str(refused.value)

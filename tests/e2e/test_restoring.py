"""The data cluster gets other data under a running network: people go on by themselves, and nothing is kept from them.

Real processes: a data cluster, a coordinator and a broker; the subscribers are programs with the client library.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import tocsin
from tests.e2e.conftest import Cluster
from tests.e2e.floods import APPLICATION, changed, gets, publish, taken
from tests.e2e.process import DataProcess
from tests.network.network import Network
from tests.waiting import until_async
from tocsin.errors import NotFoundError

pytestmark = pytest.mark.process


@pytest.fixture
async def network(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Network]:
    """A broker and a coordinator on a data cluster with the application."""
    data = cluster()
    data.start()
    data.wait_ready()
    data.apply(APPLICATION)
    async with Network(data, tmp_path, "restoring") as network:
        await network.add("a")
        yield network


def restore(copy: Path, there: Path) -> Path:
    """The copy in place of what is there."""
    shutil.rmtree(there)
    return shutil.copytree(copy, there)


async def healthy(network: Network) -> dict[str, Any]:
    """The broker's health, once both links are up."""
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:

        async def linked() -> dict[str, Any] | None:
            health: dict[str, Any] = (await client.get(f"{network.brokers['a'].process.url}/health")).json()
            return health if health["data"] and health["coordinator"] else None

        return await until_async(linked, "a broker with both links") or {}


async def test_an_older_copy_of_the_data_and_then_none_keep_nothing_from_anybody(
    network: Network, tmp_path: Path
) -> None:
    data, copy = network.data.directory, tmp_path / "copy"
    tokens = {name: await network.register(name) for name in ("ann", "bob")}
    async with tocsin.connect(network.url, tokens["ann"]) as ann:
        floods = await ann.subscribe("OfKind", wanted="flood")
        async with tocsin.connect(network.url, tokens["bob"]) as bob:
            away = await bob.subscribe("OfKind", wanted="flood")
            await publish(network.data, "r1")
            await gets(floods, "r1")
            await gets(away, "r1")
            await publish(network.data, "r2")
            await gets(away, "r2")
            await gets(floods, "r2")

        await changed(network.data, lambda: shutil.copytree(data, copy))
        await publish(network.data, "r3", "r4")
        await gets(floods, "r3", "r4")

        await changed(network.data, lambda: restore(copy, data))
        await publish(network.data, "s3", "s4", "s5")
        await gets(floods, "s3", "s4", "s5")
        health = await healthy(network)
        assert "went back from execution" in health["setbacks"][0]
        [setback] = network.data.health()["details"]["setbacks"]
        assert "knew execution 4" in setback
        async with tocsin.connect(network.url, tokens["bob"]) as bob:
            await gets(await bob.subscribe("ofkind", wanted="flood"), "s3", "s4", "s5")

        await changed(network.data, lambda: shutil.rmtree(data))
        await asyncio.to_thread(network.data.apply, APPLICATION)
        await held_again(network.data)
        await publish(network.data, "t1", "t2")
        await gets(floods, "t1", "t2")
        async with tocsin.connect(network.url, tokens["bob"]) as bob:
            await gets(await bob.subscribe("OfKind", wanted="flood"), "t1", "t2")


async def test_a_copy_of_the_data_and_of_the_coordinator_together_keeps_nothing_from_anybody(
    network: Network, tmp_path: Path
) -> None:
    """Ann stays connected throughout, so does Dora, who came after the copy was made; Bob is away meanwhile."""
    parts = {tmp_path / "copy" / part.name: part for part in (network.data.directory, tmp_path / "coordinator")}
    tokens = {name: await network.register(name) for name in ("ann", "bob")}
    async with tocsin.connect(network.url, tokens["ann"]) as ann:
        floods = await ann.subscribe("OfKind", wanted="flood")
        async with tocsin.connect(network.url, tokens["bob"]) as bob:
            away = await bob.subscribe("OfKind", wanted="flood")
            await publish(network.data, "r1", "r2")
            await gets(floods, "r1", "r2")
            await gets(away, "r1", "r2")
        await both_changed(network, lambda: [shutil.copytree(part, copy) for copy, part in parts.items()])
        async with tocsin.connect(network.url, await network.register("dora")) as dora:
            later = await dora.subscribe("OfKind", wanted="flood")
            await publish(network.data, "r3", "r4")
            await gets(floods, "r3", "r4")
            await gets(later, "r3", "r4")

            await both_changed(network, lambda: [restore(copy, part) for copy, part in parts.items()])
            await publish(network.data, "s3", "s4", "s5")
            await gets(floods, "s3", "s4", "s5")
            await gets(later, "s3", "s4", "s5")
            async with tocsin.connect(network.url, tokens["bob"]) as bob:
                # The coordinator may have been copied before it was told what Bob had taken.
                *again, s3, s4, s5 = await taken(await bob.subscribe("OfKind", wanted="flood"), "s5")
                assert [s3, s4, s5] == ["s3", "s4", "s5"]
                assert again in ([], ["r2"], ["r1", "r2"])


async def both_changed(network: Network, change: Callable[[], Any]) -> None:
    """The data cluster and the coordinator end, something is done to both directories, and both start again."""
    await network.coordinator.terminate()
    await changed(network.data, change)
    await network.coordinator.start()


async def held_again(data: DataProcess) -> None:
    """Waits until the brokers have asked for what they hold."""

    async def held() -> bool:
        return bool(await asyncio.to_thread(data.listed, "subscriptions", "channel"))

    await until_async(held, "subscriptions in the new data cluster")


async def test_a_channel_is_one_channel_in_any_spelling_and_ends_for_all_when_it_is_dropped(network: Network) -> None:
    tokens = {name: await network.register(name) for name in ("ann", "bob")}
    async with tocsin.connect(network.url, tokens["ann"]) as ann, tocsin.connect(network.url, tokens["bob"]) as bob:
        first = await ann.subscribe("ofkind", wanted="flood")
        second = await bob.subscribe("OfKind", wanted="flood")
        assert first.number == second.number
        assert first.channel == second.channel == "OfKind"
        await publish(network.data, "r1", "r2")
        await gets(first, "r1", "r2")
        await gets(second, "r1", "r2")

        replaced = APPLICATION.replace("CREATE CONT", "CREATE OR REPLACE CONT").replace(
            "r.id FROM", "r.kind, r.id FROM"
        )
        await asyncio.to_thread(network.data.apply, replaced)
        await publish(network.data, "r3")
        await gets(first, "r3")
        await gets(second, "r3")

        create = APPLICATION[APPLICATION.index("CREATE CONT") :]
        await asyncio.to_thread(network.data.apply, f"DROP CHANNEL OFKIND; {create}")
        for ended in (first, second):
            with pytest.raises(NotFoundError, match="channel OfKind was dropped"):
                await gets(ended, "nothing")
        again = await ann.subscribe("OfKind", wanted="flood")
        assert again.number != first.number
        await publish(network.data, "r4")
        await gets(again, "r4")

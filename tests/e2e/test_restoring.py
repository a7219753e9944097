"""The data cluster gets other data under a running network: people go on by themselves, and nothing is kept from them.

Real processes: a data cluster, a coordinator and a broker; the subscribers are programs with the client library.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

import tocsin
from tests.e2e.conftest import Cluster
from tests.e2e.process import DataProcess
from tests.network.network import Network
from tests.waiting import until_async
from tocsin.client.subscription import Subscription
from tocsin.errors import NotFoundError

pytestmark = pytest.mark.e2e

APPLICATION: Final = """
CREATE DATASET Reports (id STRING, kind STRING) PRIMARY KEY id;
CREATE FEED reports INTO Reports;
CREATE CONTINUOUS CHANNEL OfKind(wanted STRING) AS SELECT r.id FROM Reports r WHERE r.kind = wanted AND is_new(r);
"""
PATIENCE: Final = 120.0


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


async def publish(network: Network, *ids: str, kind: str = "flood") -> None:
    """Reports, each published by itself, so that each is found by an execution of its own."""
    for one in ids:
        record = json.dumps({"id": one, "kind": kind}).encode()
        answer = await asyncio.to_thread(network.data.publish, "reports", record)
        assert answer.status_code == 200, answer.text
        await asyncio.to_thread(network.data.wait_drained)


async def gets(subscription: Subscription, *ids: str) -> None:
    """The next notes have these reports, in this order, and nothing else."""
    found: list[str] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < len(ids):
            note = await anext(subscription)
            note.done()
            found += [row["id"] for row in note.rows]
    assert found == list(ids)


async def changed(network: Network, change: Callable[[], Any]) -> None:
    """The data cluster ends, something is done to its directory, and it starts again."""
    data = network.data
    await asyncio.to_thread(data.terminate)
    await asyncio.to_thread(data.wait_alone)
    await asyncio.to_thread(change)
    await asyncio.to_thread(data.start)
    await asyncio.to_thread(data.wait_ready)


def restore(copy: Path, data: Path) -> None:
    """The copy in place of what is there."""
    shutil.rmtree(data)
    shutil.copytree(copy, data)


async def healthy(network: Network) -> dict[str, Any]:
    """The broker's health, once both links are up."""
    async with httpx.AsyncClient(trust_env=False) as client:

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
            await publish(network, "r1")
            await gets(floods, "r1")
            await gets(away, "r1")
            await publish(network, "r2")
            await gets(away, "r2")
            await gets(floods, "r2")

        await changed(network, lambda: shutil.copytree(data, copy))
        await publish(network, "r3", "r4")
        await gets(floods, "r3", "r4")

        await changed(network, lambda: restore(copy, data))
        await publish(network, "s3", "s4", "s5")
        await gets(floods, "s3", "s4", "s5")
        health = await healthy(network)
        assert "went back from execution" in health["setbacks"][0]
        async with tocsin.connect(network.url, tokens["bob"]) as bob:
            await gets(await bob.subscribe("ofkind", wanted="flood"), "s3", "s4", "s5")

        await changed(network, lambda: shutil.rmtree(data))
        await asyncio.to_thread(network.data.apply, APPLICATION)
        await held_again(network.data)
        await publish(network, "t1", "t2")
        await gets(floods, "t1", "t2")
        async with tocsin.connect(network.url, tokens["bob"]) as bob:
            await gets(await bob.subscribe("OfKind", wanted="flood"), "t1", "t2")


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
        await publish(network, "r1", "r2")
        await gets(first, "r1", "r2")
        await gets(second, "r1", "r2")

        replaced = APPLICATION.replace("CREATE CONT", "CREATE OR REPLACE CONT").replace(
            "r.id FROM", "r.kind, r.id FROM"
        )
        await asyncio.to_thread(network.data.apply, replaced)
        await publish(network, "r3")
        await gets(first, "r3")
        await gets(second, "r3")

        create = APPLICATION[APPLICATION.index("CREATE CONT") :]
        await asyncio.to_thread(network.data.apply, f"DROP CHANNEL OFKIND; {create}")
        for ended in (first, second):
            with pytest.raises(NotFoundError, match="channel OfKind was dropped"):
                await gets(ended, "nothing")
        again = await ann.subscribe("OfKind", wanted="flood")
        assert again.number != first.number
        await publish(network, "r4")
        await gets(again, "r4")

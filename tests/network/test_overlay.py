"""A channel of a real data cluster feeds an overlay: what it finds comes once to who subscribes by content."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

import tocsin
from tests.e2e.process import WORK_SECONDS, DataProcess
from tests.network.network import Network
from tests.network.process import ServerProcess
from tests.ports import free_port
from tocsin.overlay.client import ContentSubscription

pytestmark = pytest.mark.process

KIND: Final = "comet"
"""Of reports that no other test has."""


def broker(role: str, directory: Path, *command: str, **more: object) -> ServerProcess:
    """A head or an edge in a process of its own."""
    port = free_port()
    settings = {"name": role, "port": port, "directory": directory / role, **more}
    given = {f"overlay.{key}": value for key, value in settings.items()}
    return ServerProcess(role, ["overlay", role, *command], given, port, directory / f"{role}.log")


@asynccontextmanager
async def overlay(network: Network, directory: Path) -> AsyncIterator[tuple[ServerProcess, ServerProcess]]:
    """A head that follows the channel, and its edge."""
    follow = ["--channel", "OfKind", "--param", f"wanted={KIND}", "--coordinator", network.url]
    head = broker("head", directory, *follow, "--channel-token", await network.register("head"))
    edge = broker("edge", directory, head=f"ws://127.0.0.1:{head.port}")
    try:
        await head.start()
        await edge.start()
        yield head, edge
    finally:
        edge.close()
        head.close()


def report(data: DataProcess, *ids: str, level: int = 7) -> None:
    """Publishes to the feed that the channel looks at."""
    records = [{"id": id, "kind": KIND, "level": level, "owner": "nobody"} for id in ids]
    assert data.publish("reports", "\n".join(map(json.dumps, records)).encode()).is_success


async def read_until(subscription: ContentSubscription, *ids: str) -> list[str]:
    """The ids of what comes, until all of these have; slices of a feed are in no order."""
    found: list[str] = []
    async with asyncio.timeout(WORK_SECONDS):
        while not set(ids) <= set(found):
            found.append(str((await anext(subscription)).content["id"]))
    return found


async def until_followed(data: DataProcess, subscription: ContentSubscription) -> list[str]:
    """Publishes now and then until something comes: what the channel finds before it has a subscription is nobody's."""
    reading, published = asyncio.ensure_future(anext(subscription)), list[str]()
    async with asyncio.timeout(WORK_SECONDS):
        while not reading.done():
            published.append(f"first-{len(published)}")
            report(data, published[-1])
            await asyncio.wait([reading], timeout=1.0)
    return [str((await reading).content["id"])]


async def test_what_a_real_channel_finds_comes_once_also_while_the_head_is_dead(
    data: DataProcess, tmp_path: Path
) -> None:
    async with Network(data, tmp_path, "overlay") as network:
        await network.add("a")
        async with overlay(network, tmp_path) as (head, edge), tocsin.connect(f"ws://127.0.0.1:{edge.port}") as me:
            subscription = await me.subscribe(where="kind = 'comet' and level > 5")
            came = await until_followed(data, subscription)
            report(data, "low", level=3)
            report(data, "one", "two")
            report(data, "three")
            came += await read_until(subscription, "one", "two", "three")
            head.kill()
            report(data, "four", "five")
            await head.start()
            report(data, "six")
            came += await read_until(subscription, "four", "five", "six")
    assert len(came) == len(set(came))
    assert "low" not in came

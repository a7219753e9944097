"""A head that follows a channel: each row that it is told becomes a publication, once."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import tocsin
from tests.overlay.server.running import edge, talk
from tests.running import running
from tests.waiting import SECONDS, until_async
from tocsin.errors import NotFoundError, UnauthorizedError
from tocsin.overlay.client import ContentSubscription, HeadCursor
from tocsin.overlay.dialogue import Introduce, Publish, Refused
from tocsin.overlay.server.channel import TOKEN_FILE, ChannelWanted
from tocsin.overlay.server.serve import Listening, run_head
from tocsin.settings.overlay import OverlaySettings
from tocsin.testing.sandbox import QUICK, Sandbox


def follow(
    directory: Path, town: Sandbox, channel: str = "Quotes", token: str = "", listening: Listening | None = None
) -> Coroutine[Any, Any, None]:
    """Runs a head that follows a channel."""
    settings = OverlaySettings(name="h", port=0, directory=directory, mark_seconds=0.05)
    wanted = ChannelWanted(channel, town.url, token=token, rules=QUICK)
    return run_head(settings, listening=listening, channel=wanted)


@asynccontextmanager
async def head(directory: Path, town: Sandbox) -> AsyncIterator[str]:
    """The URL of a head that follows a channel."""
    async with running(lambda listening: follow(directory, town, listening=listening)) as url:
        yield url


async def highs(subscription: ContentSubscription, count: int) -> list[float]:
    async with asyncio.timeout(SECONDS):
        return [float((await anext(subscription)).content["high"]) for _ in range(count)]


def find(town: Sandbox, *values: float) -> None:
    """An execution of the channel."""
    town.execute("Quotes", find=lambda _: [{"symbol": "YHOO", "high": high, "tags": ["a"]} for high in values])


async def problems(url: str) -> list[str]:
    """What a broker says of itself."""
    async with httpx.AsyncClient() as client:
        found: list[str] = (await client.get(f"{url.replace('ws', 'http')}/health")).json()["problems"]
    return found


async def followed(town: Sandbox) -> None:
    """Waits until the head holds its subscription."""
    await until_async(lambda: bool(town.subscriptions_of("h")))


async def test_what_a_channel_finds_comes_to_who_subscribes_by_content(tmp_path: Path) -> None:
    async with Sandbox("a") as town, head(tmp_path, town) as root, edge(root) as url, tocsin.connect(url) as me:
        quotes = await me.subscribe(where="symbol = 'YHOO' and high > 40 and tags = '[\"a\"]'")
        await followed(town)
        find(town, 39, 41, 50)
        find(town, 60)
        assert await highs(quotes, 3) == [41, 50, 60]


async def test_a_head_goes_on_where_it_was_when_it_is_started_again(tmp_path: Path) -> None:
    async with Sandbox("a") as town:
        async with head(tmp_path, town):
            await followed(town)
            find(town, 1, 2)
        find(town, 3)
        async with head(tmp_path, town) as root, edge(root) as url, tocsin.connect(url) as me:
            quotes = await me.subscribe("high > 0", cursors={"h": HeadCursor(0)})
            find(town, 4)
            assert await highs(quotes, 4) == [1, 2, 3, 4]


async def test_data_that_were_put_back_are_published_again_from_there(tmp_path: Path) -> None:
    async with Sandbox("a") as town, head(tmp_path, town) as root, edge(root) as url, tocsin.connect(url) as me:
        quotes = await me.subscribe("high > 0")
        await followed(town)
        find(town, 1)
        assert await highs(quotes, 1) == [1]
        copy = town.data.copy()
        find(town, 2)
        assert await highs(quotes, 1) == [2]
        town.restart_data(copy)
        find(town, 3)
        assert await highs(quotes, 1) == [3]


async def test_a_channel_that_is_dropped_is_told_and_followed_when_it_is_there_again(tmp_path: Path) -> None:
    async with Sandbox("a") as town, head(tmp_path, town) as root, edge(root) as url, tocsin.connect(url) as me:
        quotes = await me.subscribe("high > 0")
        await followed(town)
        find(town, 1)
        assert await highs(quotes, 1) == [1]
        town.drop("Quotes")
        await until_async(lambda: not town.subscriptions_of("h"))
        town.data.create("Quotes")
        await followed(town)
        find(town, 2)
        assert await highs(quotes, 1) == [2]


async def test_rows_that_cannot_be_publications_are_told_to_the_operator(tmp_path: Path) -> None:
    async with Sandbox("a") as town, head(tmp_path, town) as root, edge(root) as url, tocsin.connect(url) as me:
        quotes = await me.subscribe("high > 0")
        await followed(town)
        town.execute("Quotes", find=lambda _: [{"a`b": 1}, {"high": 2}])
        assert await highs(quotes, 1) == [2]
        (problem,) = await problems(root)
        assert problem.startswith("1 rows of the channel Quotes cannot be publications: 'a`b' is no attribute")


async def test_a_mistake_at_the_start_ends_the_head_with_a_sentence(tmp_path: Path) -> None:
    async with Sandbox("a") as town:
        with pytest.raises(NotFoundError, match="Nowhere"):
            await follow(tmp_path, town, "Nowhere")
        with pytest.raises(UnauthorizedError):
            await follow(tmp_path, town, token="none")


async def test_an_execution_that_finds_much_is_published_whole(tmp_path: Path) -> None:
    async with Sandbox("a") as town, head(tmp_path, town) as root, edge(root) as url, tocsin.connect(url) as me:
        quotes = await me.subscribe("high >= 0")
        await followed(town)
        find(town, *range(3000))
        find(town, 3000)
        assert await highs(quotes, 3001) == list(range(3001))


async def test_without_a_coordinator_a_head_serves_its_publishers_and_says_what_is_wrong(tmp_path: Path) -> None:
    settings = OverlaySettings(name="h", port=0, directory=tmp_path, mark_seconds=0.05)
    wanted = ChannelWanted("Quotes", "http://127.0.0.1:1", rules=QUICK)
    async with running(lambda listening: run_head(settings, listening=listening, channel=wanted)) as root:
        async with tocsin.connect(root) as publisher:
            await publisher.publish({"high": 1})
        (problem,) = await until_async(lambda: problems(root))
        assert problem.startswith("the channel Quotes is not followed: no coordinator at http://127.0.0.1:1")


async def test_no_client_can_publish_as_a_channel(tmp_path: Path) -> None:
    async with Sandbox("a") as town, head(tmp_path, town) as root, edge(root) as url, tocsin.connect(url) as me:
        quotes = await me.subscribe("high > 0")
        await followed(town)
        ((_, number),) = town.subscriptions_of("h")
        async with talk(root) as thief:
            await thief.say(Introduce(f"channel/Quotes/{number}"), Publish(2**61, {"high": 13.0}))
            refused = await thief.hear()
            assert isinstance(refused, Refused)
            assert "is no name" in refused.message
        find(town, 1)
        assert await highs(quotes, 1) == [1]


async def test_the_token_of_a_head_is_its_own_and_is_read_by_nobody_else(tmp_path: Path) -> None:
    async with Sandbox("a") as town, head(tmp_path, town):
        await followed(town)
        assert (tmp_path / TOKEN_FILE).stat().st_mode & 0o077 == 0


@pytest.mark.process
async def test_a_head_that_is_killed_while_it_is_told_publishes_everything_once(tmp_path: Path) -> None:
    flags = [f"--set=overlay.{each}" for each in ("name=h", "port=0", f"directory={tmp_path}")]
    async with Sandbox("a") as town:
        command = [sys.executable, "-m", "tocsin", *flags, "overlay", "head", "--channel", "Quotes"]
        told = 0
        for _ in range(3):
            process = await asyncio.create_subprocess_exec(*command, "--coordinator", town.url)
            await until_async(lambda: bool(town.where() and town.subscriptions_of("h")), seconds=2 * SECONDS)
            for _ in range(20):
                find(town, told + 1, told + 2)
                told += 2
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            await process.wait()
        async with head(tmp_path, town) as root, edge(root) as url, tocsin.connect(url) as me:
            quotes = await me.subscribe("high > 0", cursors={"h": HeadCursor(0)})
            assert await highs(quotes, told) == list(range(1, told + 1))

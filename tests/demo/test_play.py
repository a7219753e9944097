"""The play against the real server, with a data cluster in memory that finds what the test wants it to."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from rich.console import Console

from tests.data.server.memory import MemoryCluster
from tests.data.server.running import running
from tocsin.apps.emergency import World
from tocsin.cli.connection import Server
from tocsin.demo.cast import cast
from tocsin.demo.play import BROKER, Play
from tocsin.demo.screen import Screen
from tocsin.errors import TocsinError, UnavailableError
from tocsin.model.control import Behind
from tocsin.settings import Settings

REPORT = b'[{"id": "r1", "severity": 3, "message": "Serious fire in district A1: Smoke."}]'


class FindingCluster(MemoryCluster):
    """Tells of an execution that found something for the first subscription once a report is published."""

    def __init__(self) -> None:
        super().__init__()
        self.behind = False

    async def publish(self, feed: str, body: bytes, content_type: str) -> Any:
        published = await super().publish(feed, body, content_type)
        if feed == "reports" and not self.found:
            self.find(1, 0, REPORT)
            if self.behind:
                self.listeners[BROKER].put_nowait(Behind(self.subscriptions[0][0], 1, 1))
            else:
                self.execute(BROKER, self.subscriptions[0][0], 1, [0])
        return published

    def rows(self, what: str) -> list[dict[str, Any]]:
        return [{**item, "period": 10.0, "execution": len(self.found), "seconds": 0.5} for item in super().rows(what)]


class Performance:
    """A play and what it needs."""

    def __init__(self, cluster: FindingCluster, server: Server, stopping: asyncio.Task[None]) -> None:
        self.cluster, self.stopping, self.paper, self.ended = cluster, stopping, io.StringIO(), asyncio.Event()
        self.world = World(7, people=5)
        parts = cast(self.world)
        screen = Screen(Console(file=self.paper, width=120, highlight=False), parts)
        self.play = Play(server, "demo", self.world, parts, screen, self.ended)

    @property
    def shown(self) -> str:
        return self.paper.getvalue()


@pytest.fixture
async def performance(settings: Settings) -> AsyncIterator[Performance]:
    cluster = FindingCluster()
    async with running(cluster, settings, demo_token="demo") as (url, task):
        with Server(url, "demo") as server:
            yield Performance(cluster, server, task)


async def test_preparing_creates_loads_and_subscribes(performance: Performance) -> None:
    await performance.play.prepare()
    cluster = performance.cluster
    assert {"EmergencyReports", "reports", "EmergenciesNearMe"} <= set(cluster.definitions)
    [shelters] = cluster.loaded.values()
    assert msgspec.json.decode(shelters) == performance.world.shelters()
    assert [channel for channel, _ in cluster.subscriptions] == [part.channel for part in cast(performance.world)]
    assert "7 channels created" in performance.shown


async def test_each_second_of_the_world_is_published_and_what_is_found_is_shown(performance: Performance) -> None:
    await performance.play.prepare()
    await performance.play.run(2)
    performance.play.conclude()
    assert len(performance.cluster.published["locations"]) == 2 * 5
    assert "Aino and Bilal    1 new  EmergenciesOfType(collapse)  Serious fire in district A1" in performance.shown
    assert "In 2 s: " in performance.shown
    assert f"{len(performance.cluster.published['reports'])} reports and 10 locations published" in performance.shown


async def test_a_broker_that_is_behind_pulls_what_it_missed(performance: Performance) -> None:
    performance.cluster.behind = True
    await performance.play.prepare()
    await performance.play.run(1)
    assert "1 new  EmergenciesOfType" in performance.shown


async def test_without_a_number_of_seconds_it_goes_on_until_it_is_told_to_end(performance: Performance) -> None:
    await performance.play.prepare()
    run = asyncio.create_task(performance.play.run(None))
    performance.ended.set()
    await asyncio.wait_for(run, 30)
    performance.play.conclude()
    assert "In 1 s: " in performance.shown


async def test_a_server_that_goes_away_ends_the_play_with_a_reason(performance: Performance) -> None:
    await performance.play.prepare()
    performance.cluster.failing = UnavailableError("the data cluster is gone")
    with pytest.raises(TocsinError, match="the data cluster is gone"):
        await asyncio.wait_for(performance.play.run(None), 30)

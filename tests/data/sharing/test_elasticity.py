"""Nodes that are not needed leave, and those that are missing are asked for: real sockets, and a feed in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from tests.data.sharing.memory import MemoryFeed
from tests.data.sharing.test_sharing import NODES, Site, begun, working
from tests.waiting import until_async
from tocsin.data.sharing.gauge import ProcessGauge, Usage
from tocsin.settings import Settings

ELASTIC = replace(NODES, elastic=True, elastic_seconds=0.5)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How busy all nodes say that they are; at first so that they are needed, and no more is."""
    cpu = [0.6]
    monkeypatch.setattr(ProcessGauge, "look", lambda _: Usage(cpu[0], 0.1))
    monkeypatch.setattr(ProcessGauge, "processors", 1)
    return cpu


@pytest.fixture
async def elastic(settings: Settings, busy: list[float]) -> AsyncIterator[Site]:
    """A data cluster that lets go of nodes that are not needed."""
    async with begun(settings, MemoryFeed(), ELASTIC) as site:
        yield site


@pytest.mark.slow
async def test_workers_that_are_not_needed_leave_and_the_data_cluster_stays(elastic: Site, busy: list[float]) -> None:
    async with working(elastic, "n1", "n2") as (first, second):
        await elastic.until_owned("data", "n1", "n2")
        busy[0] = 0.1
        await asyncio.wait_for(first.done.wait(), 60)
        await asyncio.wait_for(second.done.wait(), 60)
    await elastic.until_owned("data")
    await until_async(lambda: elastic.heads.needed.leaving == [])
    await elastic.until_stored()
    assert elastic.heads.drained == []


async def test_one_of_the_same_name_that_comes_again_is_used_at_once(elastic: Site, busy: list[float]) -> None:
    async with working(elastic, "n1") as (first,):
        await elastic.until_owned("data", "n1")
        busy[0] = 0.1
        await asyncio.wait_for(first.done.wait(), 60)
    busy[0] = 0.6
    async with working(elastic, "n1"):
        await elastic.until_owned("data", "n1")
        await elastic.until_stored()


async def test_unless_nodes_are_elastic_it_is_only_said_who_is_spare(settings: Settings, busy: list[float]) -> None:
    async with begun(settings, MemoryFeed(), replace(ELASTIC, elastic=False)) as site, working(site, "n1") as (worker,):
        await site.until_owned("data", "n1")
        busy[0] = 0.1
        await until_async(lambda: site.heads.needed.spare == "n1")
        assert (site.heads.needed.elastic, site.heads.needed.leaving) == (False, [])
        assert not worker.done.is_set()
        busy[0] = 0.6
        await until_async(lambda: site.heads.needed.spare == "")
        await site.until_owned("data", "n1")


async def test_when_all_are_busy_one_more_is_wanted_until_they_are_not(elastic: Site, busy: list[float]) -> None:
    async with working(elastic, "n1"):
        await elastic.until_owned("data", "n1")
        assert elastic.heads.needed.wanted == 0
        busy[0] = 0.9
        await until_async(lambda: elastic.heads.needed.wanted == 1)
        busy[0] = 0.6
        await until_async(lambda: elastic.heads.needed.wanted == 0)


async def test_who_is_spare_is_needed_after_all_when_the_others_die(settings: Settings, busy: list[float]) -> None:
    """The last node must not be on its way out while nobody has its slices, or those of the dead one."""
    async with begun(settings, MemoryFeed(), replace(ELASTIC, local=False)) as site, working(site, "n1") as (first,):
        async with working(site, "n2"):
            await site.until_owned("n1", "n2")
            site.works["n1"].going_on.clear()
            site.feed.publish(40)
            await until_async(lambda: site.works["n1"].feed.log[0] != [])
            busy[0] = 0.1
            await until_async(lambda: site.heads.needed.leaving == ["n1"])
        await until_async(lambda: site.heads.needed.leaving == [])
        site.works["n1"].going_on.set()
        await site.until_owned("n1")
        await site.until_stored()
        assert not first.done.is_set()


async def test_a_feed_that_begins_meanwhile_does_not_keep_a_spare_node(elastic: Site, busy: list[float]) -> None:
    other = MemoryFeed("alerts")
    async with working(elastic, "n1") as (worker,):
        await elastic.until_owned("data", "n1")
        elastic.works["n1"].going_on.clear()
        elastic.feed.publish(40)
        busy[0] = 0.1
        await until_async(lambda: elastic.heads.needed.leaving == ["n1"])
        await asyncio.to_thread(elastic.heads.begin, other.share())
        elastic.works["n1"].going_on.set()
        await asyncio.wait_for(worker.done.wait(), 60)
        await elastic.until_owned("data")
    await asyncio.to_thread(elastic.heads.end, "alerts")


async def test_an_operator_can_keep_a_node_that_is_on_its_way_out(elastic: Site, busy: list[float]) -> None:
    async with working(elastic, "n1") as (worker,):
        await elastic.until_owned("data", "n1")
        elastic.works["n1"].going_on.clear()
        elastic.feed.publish(40)
        busy[0] = 0.1
        await until_async(lambda: elastic.heads.needed.leaving == ["n1"])
        busy[0] = 0.6
        elastic.heads.drain("n1", False)
        assert elastic.heads.needed.leaving == []
        elastic.works["n1"].going_on.set()
        await elastic.until_owned("data", "n1")
        await elastic.until_stored()
        assert not worker.done.is_set()

"""Whatever process is killed, in the middle of migrations: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from tests.e2e.process import DataProcess
from tests.network.scenario import Scenario, scenario
from tests.waiting import until_async

pytestmark = pytest.mark.process

# So slow that a migration of hundreds has a middle.
SLOWLY = {"moves_per_second": 40, "moves_in_flight": 20}


async def in_the_middle(now: Scenario) -> str:
    """Begins to drain the broker that has most subscribers; returns it when some have left and some are under way."""
    before = await now.network.status()
    fullest = await now.network.fullest()
    await now.network.drain(fullest)

    async def begun() -> bool:
        status = await now.network.status()
        return bool(status["moved"] > before["moved"] and status["moving"])

    await until_async(begun, f"subscribers of {fullest} that are under way")
    return fullest


@pytest.mark.parametrize("victim", ["source", "destination"])
async def test_a_broker_is_killed_in_the_middle_of_migrations(
    data: DataProcess, tmp_path: Path, random: Random, victim: str
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b", "c"], people=200, **SLOWLY) as now:
        source = await in_the_middle(now)
        killed = source if victim == "source" else next(name for name in now.network.brokers if name != source)
        now.network.brokers[killed].process.kill()
        await now.network.becomes(killed, "dead")
        await now.network.emptied(killed)
        await now.swarm.told()
        await now.network.brokers[killed].process.start()
        await now.network.becomes(killed, "serving", "joining", "draining")
        await now.network.drain(source, on=False)
        await now.swarm.told()
        await now.all_zero()


async def test_the_coordinator_is_killed_in_the_middle_of_migrations_and_delivery_goes_on_without_it(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=200, **SLOWLY) as now:
        source = await in_the_middle(now)
        now.network.coordinator.kill()
        await now.swarm.told(3)
        await now.network.coordinator.start()
        status = await now.network.status()
        assert status["subscribers"] == 200
        assert {broker["name"] for broker in status["brokers"]} == set(now.network.full_names())
        await now.network.emptied(source)
        await now.swarm.told()
        await now.all_zero()


async def test_the_data_cluster_is_killed_in_the_middle_of_migrations(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=100, **SLOWLY) as now:
        await now.swarm.told()
        source = await in_the_middle(now)
        data.kill()
        await asyncio.to_thread(data.start)
        await asyncio.to_thread(data.wait_ready)
        await now.network.emptied(source)
        await now.swarm.told(3)
        await now.all_zero()


async def test_everything_but_the_data_cluster_is_killed_and_started_again(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=60) as now:
        await now.swarm.told()
        for process in now.network.processes():
            process.kill()
        for process in now.network.processes():
            process.spawn()
        for process in now.network.processes():
            await process.listening()
        await now.swarm.told()
        await now.all_zero()

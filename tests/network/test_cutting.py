"""The network between the processes is slow, breaks and falls silent, and is whole again: nobody misses anything."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from tests.e2e.process import DataProcess
from tests.network.proxy import Conditions
from tests.network.scenario import scenario
from tests.network.weather import trouble

pytestmark = pytest.mark.process

ROUNDS = 9


async def test_connections_are_cut_at_random_everywhere(data: DataProcess, tmp_path: Path, random: Random) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=100) as now:
        for _ in range(ROUNDS):
            await asyncio.gather(trouble(now.network, random), trouble(now.network, random))
        await now.swarm.told()
        await now.all_zero()


async def test_connections_are_cut_at_random_while_everybody_is_moved(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=100, moves_per_second=30) as now:
        for there in ("a", "b"):
            await now.network.drain(there)
            for _ in range(ROUNDS // 3):
                await trouble(now.network, random)
            await now.network.emptied(there)
            await now.network.drain(there, on=False)
        await now.swarm.told()
        await now.all_zero()


async def test_a_broker_cut_off_from_the_coordinator_goes_on_serving_until_its_subscribers_are_called_away(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=60) as now:
        now.network.brokers["a"].up.set(Conditions(frozen=True))
        await now.network.becomes("a", "dead")
        await now.swarm.told(2)
        now.network.brokers["a"].up.set(Conditions())
        await now.network.becomes("a", "serving", "joining")
        await now.network.all_present()
        await now.swarm.told(2)
        await now.all_zero()


async def test_a_broker_cut_off_from_the_data_cluster_catches_up_when_it_is_back(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=60) as now:
        await now.swarm.told()
        out = now.network.brokers["a"].out
        out.set(Conditions(refusing=True))
        out.lose()
        await now.swarm.told_some(100)
        out.set(Conditions())
        await now.swarm.told(2)
        await now.all_zero()

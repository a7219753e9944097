"""Anything may happen to the network, in any order: in the end everybody has had everything once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from tests.e2e.process import DataProcess
from tests.network.network import Network
from tests.network.scenario import Scenario, scenario
from tests.network.weather import trouble

pytestmark = pytest.mark.process

ROUNDS = 10
LONGEST_AWAY = 4.0


async def something(now: Scenario, random: Random) -> None:
    """One thing that happens."""
    network, name = now.network, random.choice("abc")
    match random.choice(["kill", "kill", "stop", "coordinator", "drain", "drain", "keep", "weather", "absence"]):
        case "kill":
            network.brokers[name].process.kill()
            await back(network, name, random)
        case "stop":
            assert await network.brokers[name].process.terminate() == 0
            await back(network, name, random)
        case "coordinator":
            network.coordinator.kill()
            await asyncio.sleep(random.uniform(0, LONGEST_AWAY))
            await network.coordinator.start()
        case "drain":
            await network.drain(name)
        case "keep":
            await network.drain(name, on=False)
        case "weather":
            await trouble(network, random)
        case "absence":
            person = random.choice(now.swarm.people)
            await person.stop()
            await person.start()


async def back(network: Network, name: str, random: Random) -> None:
    """A broker that is not there comes back, sooner or later."""
    await asyncio.sleep(random.uniform(0, LONGEST_AWAY))
    await network.brokers[name].process.start()


async def test_nobody_misses_anything_whatever_happens(data: DataProcess, tmp_path: Path, random: Random) -> None:
    slowly = {"moves_per_second": 40, "returning_seconds": 3}
    async with scenario(data, tmp_path, random, ["a", "b", "c"], people=100, **slowly) as now:
        for _ in range(ROUNDS):
            await something(now, random)
        for name in now.network.brokers:
            await now.network.drain(name, on=False)
        await now.swarm.told()
        await now.all_zero()

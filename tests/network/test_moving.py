"""Subscribers are moved between brokers that live, while they are told things, and nobody notices."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.e2e.process import DataProcess
from tests.network.scenario import scenario
from tests.waiting import until_async

pytestmark = pytest.mark.process


async def test_two_hundred_subscribers_are_moved_back_and_forth(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    # No broker dies here: on a machine that is too busy one may seem to, and who wants what is live would lose by it.
    async with scenario(data, tmp_path, random, ["a", "b"], people=180, silence_seconds=60) as now:
        # Whoever only wants what is live is not away while it moves.
        await now.swarm.add(20, live=True)
        for _ in range(2):
            for there in ("a", "b"):
                await now.network.drain(there)
                await now.network.emptied(there)
                await now.network.drain(there, on=False)
                await now.swarm.told()
        await now.network.all_present()
        assert (await now.network.status())["moved"] >= 600
        await now.all_zero()


async def test_a_broker_that_joins_later_gets_load(data: DataProcess, tmp_path: Path, random: Random) -> None:
    quick = {"interval_seconds": 1, "cool_down_seconds": 1, "settle_seconds": 1}
    async with scenario(data, tmp_path, random, ["a", "b"], people=60, **quick) as now:
        await now.swarm.told()
        await now.network.add("c")

        async def loaded() -> bool:
            return int((await now.network.broker("c"))["online"]) > 0

        await until_async(loaded, "subscribers on the new broker")
        await now.swarm.told()
        await now.all_zero()


async def test_a_broker_that_is_stopped_after_it_was_drained_loses_nobody(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=60) as now:
        await now.network.drain("a")
        await now.network.emptied("a")
        assert await now.network.brokers["a"].process.terminate() == 0
        await now.swarm.told(3)
        await now.all_zero()


async def test_a_broker_that_is_stopped_without_being_drained_loses_nobody_either(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=60) as now:
        assert await now.network.brokers["a"].process.terminate() == 0
        await now.network.becomes("a", "dead")
        await now.network.emptied("a")
        await now.swarm.told()
        await now.all_zero()

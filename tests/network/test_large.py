"""Whatever one subscriber asks for, the others of its broker are served, also after restarts and moves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

import tocsin
from tests.e2e.process import DataProcess
from tests.network.scenario import scenario
from tocsin.errors import InvalidError

pytestmark = pytest.mark.process


async def test_large_parameters_cut_nobody_off(data: DataProcess, tmp_path: Path, random: Random) -> None:
    """First as large as a message may be, which is refused; then as large as is taken, as many as one may have."""
    async with scenario(data, tmp_path, random, ["a"], people=20) as now:
        token = await now.network.register("glutton")
        async with tocsin.connect(now.network.url, token) as glutton:
            for number in range(36):
                with pytest.raises(InvalidError, match="at most 4,096 are taken"):
                    await glutton.subscribe("OfKind", wanted=f"{number:03}" + "x" * 250_000)
            large = [f"{number:04}" + "x" * 3_900 for number in range(1000)]
            await asyncio.gather(*(glutton.subscribe("OfKind", wanted=text) for text in large))
            now.network.brokers["a"].process.kill()
            await now.network.brokers["a"].process.start()
            await now.swarm.told()
            await now.network.add("b")
            await now.network.drain("a")
            await now.network.emptied("a")
            await now.swarm.told()
            now.network.coordinator.kill()
            await now.network.coordinator.start()
            await now.swarm.told()
        await now.all_zero()

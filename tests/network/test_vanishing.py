"""A subscriber disappears in the middle of its own migration, and comes back: with nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from random import Random

import pytest

from tests.e2e.process import DataProcess
from tests.network.network import Network
from tests.network.program import Program
from tests.network.proxy import Conditions, Hold
from tests.network.reports import interests
from tests.network.scenario import Scenario, scenario
from tests.waiting import until_async

pytestmark = pytest.mark.process


class Phase(StrEnum):
    """How far a migration has come when the subscriber disappears."""

    UNPREPARED = "before the new broker is prepared"
    TOLD = "after it was told, before it has opened a connection there"
    OPENED = "after it has opened one, before its login arrives"
    ENTERED = "after its login has arrived, before it is welcomed"
    WELCOMED = "after it was welcomed"


HOLDS = {Phase.TOLD: Hold.ACCEPTED, Phase.OPENED: Hold.OPENED, Phase.ENTERED: Hold.SAID}


@asynccontextmanager
async def program(now: Scenario, random: Random, directory: Path) -> AsyncIterator[Program]:
    """A subscriber in a process of its own."""
    [name] = now.others
    token = await now.network.register(name)
    made = Program(now.network.url, now.record, name, token, interests(random, name), directory / "subscriber.log")
    try:
        await made.start()
        yield made
    finally:
        await made.kill()


async def whereabouts(network: Network) -> tuple[str, str]:
    """The broker that the only subscriber is on, and the other one."""

    async def settled() -> tuple[str, str] | None:
        status, (one, other) = await network.status(), network.brokers
        on_one = (await network.broker(one))["subscribers"] == 1
        return None if status["moving"] else (one, other) if on_one else (other, one)

    return await until_async(settled, "a subscriber that is not being moved")


async def begin_to_move(now: Scenario, subscriber: Program, phase: Phase) -> str:
    """Drains the subscriber's broker, and returns when the move is in this phase; the broker that is drained."""
    source, destination = await whereabouts(now.network)
    way = now.network.brokers[destination].into
    way.set(Conditions(hold=HOLDS.get(phase)))
    await now.network.drain(source)
    if phase in HOLDS:
        await until_async(way.is_holding, f"connection held {phase}")
    elif phase is Phase.WELCOMED:
        await subscriber.noticed("moved")
    return source


async def repaired(network: Network) -> None:
    """What was held back is gone for good, and new connections pass."""
    for broker in network.brokers.values():
        broker.into.reset()
        broker.into.set(Conditions())


async def test_a_program_that_is_killed_while_it_moves_gets_in_its_next_run_what_it_has_not_seen(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with (
        scenario(data, tmp_path, random, ["a", "b"], people=0, others=1, arriving_seconds=2) as now,
        program(now, random, tmp_path) as subscriber,
    ):
        for phase in Phase:
            await subscriber.told()
            drained = await begin_to_move(now, subscriber, phase)
            await subscriber.kill()
            await repaired(now.network)
            await subscriber.start()
            await subscriber.told()
            await now.network.drain(drained, on=False)
        await now.all_zero()


async def test_a_program_that_is_cut_off_while_it_moves_comes_back_with_its_cursors(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with (
        scenario(data, tmp_path, random, ["a", "b"], people=0, others=1, arriving_seconds=2) as now,
        program(now, random, tmp_path) as subscriber,
    ):
        for phase in Phase:
            await subscriber.told()
            drained = await begin_to_move(now, subscriber, phase)
            await repaired(now.network)
            await subscriber.told()
            await now.network.drain(drained, on=False)
        await now.all_zero()

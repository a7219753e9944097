"""Subscribers go and come back: what they missed comes first, unless they only want what is live."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.e2e.process import DataProcess
from tests.network.scenario import Scenario, scenario
from tests.waiting import until_async

pytestmark = pytest.mark.process


async def much_is_found(now: Scenario) -> dict[str, int]:
    """Waits until every channel was executed a few times more; the executions by then."""
    before = now.executions()

    async def found() -> bool:
        return all(execution >= before[name] + 3 for name, execution in now.executions().items())

    await until_async(found, "more executions")
    return now.executions()


async def test_who_was_away_gets_what_was_missed_first_and_who_is_live_does_not(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=20) as now:
        live = await now.swarm.add(20, live=True)
        await now.swarm.told()
        away = now.swarm.people[:10] + live[:10]
        for person in away:
            await person.stop()
        passed = await much_is_found(now)
        before = len(now.record.seen)
        for person in away:
            await person.start()
        await now.swarm.told(2)
        later = now.record.seen[before:]
        for person in away[:10]:
            first = next(note for note in later if note.subscriber == person.name)
            assert first.recovered
        for person in live[:10]:
            for channel, number in person.numbers.items():
                assert now.record.since(person.name, number) >= passed[channel]
        await now.all_zero()


async def test_who_was_away_is_moved_meanwhile_and_misses_nothing(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=60) as now:
        await now.swarm.told()
        away = now.swarm.people[:30]
        for person in away:
            await person.stop()
        await now.network.drain("a")
        await now.network.emptied("a")
        assert await now.network.brokers["a"].process.terminate() == 0
        await much_is_found(now)
        for person in away:
            await person.start()
        await now.swarm.told()
        await now.all_zero()


async def test_of_what_was_given_up_nothing_comes_and_asked_for_again_only_what_is_new(
    data: DataProcess, tmp_path: Path, random: Random
) -> None:
    async with scenario(data, tmp_path, random, ["a", "b"], people=30) as now:
        await now.swarm.told()
        for person in now.swarm.people[:20]:
            await person.give_up("OfKind")
        await much_is_found(now)
        for person in now.swarm.people[:10]:
            await person.ask("OfKind")
        await now.swarm.told(2)
        await now.all_zero()

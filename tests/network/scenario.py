"""What every scenario has: a network, a swarm on it, somebody who publishes, and a verdict in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx

from tests.e2e.process import DataProcess
from tests.network.network import Network
from tests.network.record import Record, judge
from tests.network.reports import Publisher
from tests.network.swarm import Swarm, swarm


@dataclass
class Scenario:
    """Everything in motion."""

    network: Network
    swarm: Swarm
    publisher: Publisher
    record: Record
    others: Sequence[str]

    def executions(self) -> dict[str, int]:
        """How often each channel was executed by now."""
        return {name: channel["execution"] for name, channel in self.network.data.channels().items()}

    async def all_zero(self) -> None:
        """Publishes no more, waits for what is under way, and wants nothing lost, repeated, disordered or wrong."""
        last = await self.publisher.finish()
        verdict = await judge(self.record, self.network.data.client, last)
        self.swarm.check()
        assert verdict.seen
        assert not verdict.faults, str(verdict)


@asynccontextmanager
async def scenario(
    data: DataProcess,
    directory: Path,
    random: Random,
    brokers: Sequence[str],
    people: int,
    others: int = 0,
    **settings: object,
) -> AsyncIterator[Scenario]:
    """A network with brokers and people who listen, while records are published.

    Names of people and brokers begin with a word drawn for this scenario, since the data cluster has seen others.

    Args:
        others: for so many names more, which the test gives to whom it likes, records are published.
        settings: of the coordinator.
    """
    word = f"{random.getrandbits(32):08x}"
    record, given = Record(), {f"coordinator.{key}": value for key, value in settings.items()}
    async with Network(data, directory, word, given) as network:
        await network.add(*brokers)
        async with swarm(network, record, random, word) as crowd:
            await crowd.add(people)
            crowd.names += (more := [f"{word}-other-{number}" for number in range(others)])
            publisher = Publisher([f"http://127.0.0.1:{data.port}"], random, word, crowd.names)
            publisher.begin()
            try:
                yield Scenario(network, crowd, publisher, record, more)
            except Exception as error:
                error.add_note(await _circumstances(network))
                raise
            finally:
                await publisher.close()


async def _circumstances(network: Network) -> str:
    """What helps to find out why a scenario failed."""
    logs = f"logs in {network.directory} and {network.data.log}"
    try:
        return f"{logs}\nthe coordinator: {await network.status()}"
    except httpx.TransportError as error:
        return f"{logs}\nthe coordinator does not answer: {error!r}"

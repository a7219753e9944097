"""Bad weather on the ways between processes, drawn at random."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from tests.network.network import Network
from tests.network.proxy import Conditions, Passage, Proxy

# How long it lasts: shorter and longer than it takes to notice that somebody is gone.
_SHORTEST: Final = 0.2
_LONGEST: Final = 4.0


def weather(random: Random) -> Conditions:
    """One of the ways in which a network is bad."""
    return random.choice(
        [
            Conditions(delay=random.uniform(0.01, 0.3)),
            Conditions(rate=random.uniform(20_000, 200_000)),
            Conditions(limit=random.randint(1, 20_000)),
            Conditions(frozen=True),
            Conditions(refusing=True),
        ]
    )


def some(random: Random) -> Callable[[Passage], bool]:
    """Chooses about a third of the connections."""
    return lambda passage: random.random() < 1 / 3


def ways(network: Network) -> list[Proxy]:
    """All ways between two processes."""
    between = [way for broker in network.brokers.values() for way in (broker.into, broker.up, broker.out)]
    return [network.door, *between]


async def trouble(network: Network, random: Random) -> None:
    """Something happens to one of the ways, for a while; some of its connections do not survive it."""
    way = random.choice(ways(network))
    way.set(weather(random))
    random.choice([way.reset, way.lose])(some(random))
    await asyncio.sleep(random.uniform(_SHORTEST, _LONGEST))
    way.set(Conditions())
    random.choice([way.reset, way.lose])(some(random))

"""The ways between the hosts of a network, and trouble on them, drawn at random."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Final

from tocsin.local.cluster import ClusterNetwork, node_names
from tocsin.local.hosts import Hosts
from tocsin.local.infrastructure import KAFKA, MASTER, POSTGRESQL, S3, spark_workers
from tocsin.local.network import COORDINATOR

Way = tuple[str, str]
# How long a cut lasts: shorter and longer than it takes to notice that somebody is gone.
_SHORTEST: Final = 0.5
_LONGEST: Final = 8.0


def ways(network: ClusterNetwork, people: Sequence[str], publisher: str) -> list[Way]:
    """Any two hosts that have something to say to each other."""
    workers, heads = spark_workers(network.infrastructure.workers), network.heads
    below = [*product((*heads, MASTER, KAFKA), workers), (workers[0], workers[-1]), (COORDINATOR, POSTGRESQL)]
    above = [*product(network.names, (COORDINATOR, *heads, *people)), *product(people, [COORDINATOR])]
    shared = product(node_names(network.nodes), (*heads, KAFKA))
    lake = product((*heads, *workers, *node_names(network.nodes)), [S3] if S3 in network.hosts.names else [])
    return [*lake, *below, *product(heads, (MASTER, KAFKA, POSTGRESQL, publisher)), *shared, *above]


async def trouble(hosts: Hosts, random: Random, choice: Sequence[Way]) -> None:
    """One way is cut for a while, in both directions or in one."""
    one, other = random.sample(random.choice(choice), 2)
    random.choice([hosts.cut, hosts.silence])(one, other)
    await asyncio.sleep(random.uniform(_SHORTEST, _LONGEST))
    hosts.mend(one, other)

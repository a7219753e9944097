"""A demo from its first process to its last: all on one address of this machine, or each part on a host of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from tocsin.apps.emergency.ground import Ground
from tocsin.client.operator import Operator
from tocsin.crowd.crowd import crowd
from tocsin.crowd.plan import CrowdPlan
from tocsin.demo.board import Board
from tocsin.demo.network import cluster, whereabouts
from tocsin.demo.play import Play, create
from tocsin.demo.screen import DemoScreen
from tocsin.errors import StorageError
from tocsin.local.cluster import STANDBY, ClusterNetwork, broker_names, node_names
from tocsin.local.hosts import Hosts, hosts
from tocsin.local.infrastructure import (
    KAFKA,
    MASTER,
    POSTGRESQL,
    S3,
    infrastructure,
    infrastructure_hosts,
    spark_workers,
)
from tocsin.local.network import COORDINATOR, DATA, TOKEN, LocalNetwork
from tocsin.local.running import Running
from tocsin.local.signals import until_told

PEOPLE: Final = "people"
WORKERS: Final = 2
NODES: Final = 3
_MISSING: Final = {
    POSTGRESQL: "PostgreSQL is not installed: the states of coordinator and data cluster are files. On Debian, "
    "apt-get install postgresql, and pip install 'tocsin[postgresql]'.",
    KAFKA: "Kafka is not installed: publications wait in files of the data cluster. scripts/ensure-kafka fetches it, "
    "and pip install 'tocsin[kafka]' what speaks to it.",
    S3: "There is no S3 server: datasets and results are files of the data cluster. scripts/ensure-s3 builds one, and "
    "pip install 'tocsin[s3]' what speaks to it.",
}


@dataclass(frozen=True)
class Performance:
    """The demo on a network that is up, whatever that runs on. ``token`` is an operator's."""

    plan: CrowdPlan
    token: str
    logs: Path
    seconds: int | None
    screen: DemoScreen
    ended: asyncio.Event

    async def give(self) -> None:
        """The whole of it."""
        plan, world = self.plan, self.plan.world(datetime.now(UTC))
        async with Operator(plan.data, plan.coordinator, self.token, data_token=plan.data_token) as operator:
            await create(operator, world, self.screen)
            play = Play(operator, self.screen, self.ended)
            async with crowd(plan, len(world.subscribers), self.logs, play.hear) as people:
                await play.run(people, self.seconds)


async def perform(net: LocalNetwork, plan: CrowdPlan, seconds: int | None, console: Console) -> None:
    """A demo on a network of this machine."""
    screen = _screen(plan, net.names, console)
    plan = replace(plan, coordinator=net.url(COORDINATOR), data=net.url(DATA))
    with until_told() as ended:
        performance = Performance(plan, TOKEN, net.directory / "log", seconds, screen, ended)
        await Running(net, screen).run(ended, performance.give)


def perform_on_hosts(
    directory: Path,
    plan: CrowdPlan,
    brokers: int,
    options: list[str],
    land: Ground,
    seconds: int | None,
    console: Console,
) -> None:
    """A demo on hosts, which are gone in the end. UnavailableError where they cannot be made.

    The database is gone with them, so that the directory must be one without data: StorageError.
    """
    if (directory / DATA).exists():
        raise StorageError(f"{directory} has the data of another demo, without its database: choose an empty one")
    names = [
        *infrastructure_hosts(WORKERS, s3=True),
        DATA,
        STANDBY,
        *node_names(NODES),
        COORDINATOR,
        *broker_names(brokers),
        PEOPLE,
    ]
    # All that this process starts and asks begins on the host of the people; the parts then go to theirs.
    with hosts(*names) as made, infrastructure(made, directory, WORKERS) as below, made.inside(PEOPLE):
        network = cluster(below, directory, brokers, NODES, options, land)
        asyncio.run(_perform_on_hosts(network, plan, seconds, console))


async def _perform_on_hosts(planned: ClusterNetwork, plan: CrowdPlan, seconds: int | None, console: Console) -> None:
    screen, below = _screen(plan, planned.names, console), planned.infrastructure
    _show(screen, below.hosts)

    with until_told() as ended:

        async def run() -> None:
            net = await asyncio.to_thread(planned.with_tokens)
            where = replace(plan, coordinator=net.url(COORDINATOR), data=net.url(DATA))
            # Anybody may register there, so that no operator's token is on a command line.
            known = replace(where, token=None, data_token=net.tokens.data)
            logs = net.directory / "log"
            performance = Performance(known, net.tokens.coordinator, logs, seconds, screen, ended)
            await Running(net, screen).run(ended, performance.give)

        await Running(below, screen).run(ended, run)


def missing(hosts: Sequence[str]) -> list[str]:
    """Of each server without a host, what is done without it and how to get it."""
    return [sentence for name, sentence in _MISSING.items() if name not in hosts]


def _screen(plan: CrowdPlan, brokers: Sequence[str], console: Console) -> DemoScreen:
    screen = DemoScreen(console, Board(whereabouts(brokers)))
    screen.introduce(len(plan.world(datetime.now(UTC)).subscribers), len(brokers))
    return screen


def _show(screen: DemoScreen, made: Hosts) -> None:
    """What runs where, what is missing, and how to look around."""
    screen.say("Each part is on a host of its own, a network namespace with an address:")
    table = Table(box=None, pad_edge=False, show_header=False)
    for name in made.names:
        table.add_row(f"  {name}", made.address(name), _role(name))
    screen.console.print(table)
    for sentence in missing(made.names):
        screen.trouble(sentence)
    screen.say(f"To look around from one of them, in another terminal: {' '.join(made.on(PEOPLE))} bash\n")


def _role(name: str) -> str:
    roles = {
        POSTGRESQL: "PostgreSQL: who subscribed to what, definitions, tokens",
        KAFKA: "Kafka: publications, until their dataset has them",
        S3: "S3: datasets and results",
        MASTER: "Spark's master",
        DATA: "the data cluster, the driver of Spark",
        STANDBY: "another data cluster, which stands by to take over",
        COORDINATOR: "the coordinator",
        PEOPLE: "everybody who subscribes and publishes, and this screen",
        **dict.fromkeys(spark_workers(WORKERS), "a worker of Spark: computes what is new for whom"),
        **dict.fromkeys(node_names(NODES), "a processing node: stores its share of what is published"),
    }
    return roles.get(name, "a broker")

"""A whole network, each part on a host of its own, on a Spark cluster, Kafka, PostgreSQL and S3: any way may be cut."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

import httpx
import pytest
from deltalake import DeltaTable
from rich.console import Console

from tests.hosts.ways import trouble, ways
from tests.network.conftest import random as random
from tests.network.program import Program
from tests.network.record import Record, judge
from tests.network.reports import APPLICATION, Publisher, interests
from tests.waiting import until_async
from tocsin.client.coordinator import register
from tocsin.local.cluster import STANDBY, ClusterNetwork, broker_names, node_names
from tocsin.local.hosts import hosts, why_not
from tocsin.local.infrastructure import (
    KAFKA,
    POSTGRESQL,
    S3,
    Infrastructure,
    infrastructure,
    infrastructure_hosts,
    spark_workers,
)
from tocsin.local.network import COORDINATOR, DATA
from tocsin.local.running import Running
from tocsin.local.s3 import BUCKET
from tocsin.local.screen import NetworkScreen

pytestmark = [pytest.mark.process, pytest.mark.kafka, pytest.mark.postgresql, pytest.mark.s3]

WORKERS: Final = 2
BROKERS: Final = 2
NODES: Final = 3
HOSTS_OF_PEOPLE: Final = ("people-1", "people-2")
PUBLISHER: Final = "publisher"
PEOPLE: Final = 6
ROUNDS: Final = 4
AT_ONCE: Final = 2
# As many slices that each node can have some.
SHARED: Final = APPLICATION.replace("INTO 2 SLICES", "INTO 12 SLICES")
# Generous, for all of it shares one machine: reaching it means that something is wrong, not slow.
SECONDS: Final = 300.0
ANSWER_SECONDS: Final = 5.0


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Infrastructure]:
    """A host for each part, with this thread on the publisher's, and what the network runs on, not started yet."""
    if reason := why_not():
        pytest.skip(reason)
    names = [
        *infrastructure_hosts(WORKERS, s3=True),
        DATA,
        STANDBY,
        COORDINATOR,
        *broker_names(BROKERS),
        *node_names(NODES),
        *HOSTS_OF_PEOPLE,
        PUBLISHER,
    ]
    assert {KAFKA, POSTGRESQL, S3} <= set(names), "not all servers are there: 'make servers' installs them"
    with hosts(*names) as made, infrastructure(made, tmp_path, WORKERS) as below, made.inside(PUBLISHER):
        yield below


async def test_whatever_way_is_cut_nothing_is_lost_and_nothing_comes_twice(
    servers: Infrastructure, tmp_path: Path, random: Random
) -> None:
    told = io.StringIO()
    screen, ended = NetworkScreen(Console(file=told)), asyncio.Event()
    brokers = [{"broker.ping_seconds": 2}] * BROKERS
    # Who stands by must have a core when it takes over, also if the other one only hangs.
    spark = {"spark.pyspark.python": str(executors_python(tmp_path)), "spark.cores.max": "1"}
    # A cut may last longer than that, so that nodes lose their slices by some.
    soon = {"data.takeover_seconds": 4, "nodes.silent_seconds": 3}
    planned = ClusterNetwork(servers, tmp_path, BROKERS, of_data=soon, of_brokers=brokers, of_spark=spark, nodes=NODES)

    async def run() -> None:
        network = await asyncio.to_thread(planned.with_tokens)
        await Running(network, screen).run(ended, lambda: play(network, tmp_path, random))

    try:
        await Running(servers, screen).run(ended, run)
    except Exception as error:
        error.add_note(f"logs in {tmp_path}; what was told of the network:\n{told.getvalue()}")
        raise


async def play(network: ClusterNetwork, directory: Path, random: Random) -> None:
    """People listen to what is published, whatever way is cut, and are to have had everything once."""
    record, names = Record(), [f"person-{number}" for number in range(PEOPLE)]
    async with calls(network, await active(network)) as data:
        assert (await data.post("/apply", content=SHARED)).status_code == 200
    urls, token = [network.url(name) for name in network.heads], network.tokens.data
    publisher = Publisher(urls, random, "report", names, token, ANSWER_SECONDS)
    async with listening(network, record, random, names, directory) as programs:
        publisher.begin()
        try:
            await asyncio.gather(*(program.told(SECONDS) for program in programs))
            await cut_at_random(network, random)
            await cut_off_the_active_one(network)
            await nodes_get_on(network)
            await cut_at_random(network, random)
            last = await publisher.finish()
        finally:
            await publisher.close()
        url, headers = network.url(await active(network)), {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, trust_env=False, verify=False, timeout=SECONDS) as judged:
            verdict = await judge(record, judged, last, SECONDS)
    assert {note.subscriber for note in record.seen} == set(names)
    assert not verdict.faults, str(verdict)
    # The server keeps objects as files.
    reports = directory / S3 / "root" / BUCKET / "tocsin" / "datasets" / "Reports"
    stored = DeltaTable(reports).to_pyarrow_table(columns=["id"])["id"].to_pylist()
    assert len(stored) == len(set(stored))
    assert set(stored) >= {f"report-{number}" for number in range(publisher.published)}
    assert executors_that_ran_tasks(directory) == set(spark_workers(WORKERS))


async def cut_at_random(network: ClusterNetwork, random: Random) -> None:
    """Ways are cut and mended, some at the same time."""
    choice = ways(network, HOSTS_OF_PEOPLE, PUBLISHER)
    for _ in range(ROUNDS):
        await asyncio.gather(*(trouble(network.hosts, random, choice) for _ in range(AT_ONCE)))


async def cut_off_the_active_one(network: ClusterNetwork) -> None:
    """The data cluster that is active loses its way to the database, until the other has taken over."""
    before = await active(network)

    async def replaced() -> bool:
        return await active(network) != before

    network.hosts.cut(before, POSTGRESQL)
    try:
        await until_async(replaced, "takeover", SECONDS)
    finally:
        network.hosts.mend(before, POSTGRESQL)


async def nodes_get_on(network: ClusterNetwork) -> None:
    """All nodes are connected to the new head, have slices of it, and process what comes for them."""
    head, nodes, seen = await active(network), set(node_names(network.nodes)), set[str]()

    async def processing() -> bool:
        with suppress(httpx.TransportError):
            async with calls(network, head) as data:
                feeds = (await data.get("/slices", timeout=ANSWER_SECONDS)).json()["feeds"]
            there = [node for feed in feeds for node in feed["nodes"] if node["state"] != "lost"]
            seen.update(node["name"] for node in there if node["slices"] and node["rows"])
            return {node["name"] for node in there} >= nodes <= seen
        return False

    await until_async(processing, f"rows from each of {sorted(nodes)} at the new head", SECONDS)


async def active(network: ClusterNetwork) -> str:
    """The data cluster that says that it is well, once one does."""

    async def one() -> str:
        for name in network.heads:
            with suppress(httpx.TransportError):
                async with calls(network, name) as data:
                    if (await data.get("/health", timeout=ANSWER_SECONDS)).is_success:
                        return name
        return ""

    return await until_async(one, "a data cluster that is active", SECONDS)


def calls(network: ClusterNetwork, head: str) -> httpx.AsyncClient:
    """Calls to a data cluster."""
    headers = {"Authorization": f"Bearer {network.tokens.data}"}
    return httpx.AsyncClient(
        base_url=network.url(head), headers=headers, trust_env=False, verify=False, timeout=SECONDS
    )


@asynccontextmanager
async def listening(
    network: ClusterNetwork, record: Record, random: Random, names: Sequence[str], directory: Path
) -> AsyncIterator[list[Program]]:
    """People of these names, who have subscribed; each a process, on the hosts of people in turn."""
    programs: list[Program] = []
    coordinator = network.url(COORDINATOR)
    try:
        for number, name in enumerate(names):
            place = network.hosts.on(HOSTS_OF_PEOPLE[number % len(HOSTS_OF_PEOPLE)])
            token, log = await register(coordinator, name), directory / f"{name}.log"
            programs.append(Program(coordinator, record, name, token, interests(random, name), log, place))
            await programs[-1].start()
        yield programs
    finally:
        await asyncio.gather(*(program.kill() for program in programs))


def executors_python(directory: Path) -> Path:
    """A Python for the executors that is elsewhere than the data cluster's own."""
    python = directory / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return python


def executors_that_ran_tasks(directory: Path) -> set[str]:
    """The workers on whose host something was computed."""
    logs = (directory / "spark").glob("*/app-*/*/stderr")
    return {log.parts[-4] for log in logs if "Finished task" in log.read_text(encoding="utf-8", errors="replace")}

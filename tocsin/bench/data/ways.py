"""Servers that go about the same in different ways, published to in turns: delays, and how much is taken.

So it is found what matching on arrival gains, and what a log in Kafka, of one node that is started for it, costs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tocsin.bench.data import ingestion
from tocsin.bench.data.latency import WARM_SECONDS, LatencyProbe
from tocsin.bench.data.server import BenchServer
from tocsin.bench.report import Figure, quantile
from tocsin.local.kafka import connector_jars, has_kafka, kafka_server

LATENCY: Final = "publish → result ready"
INGESTION: Final = "ingestion, HTTP to dataset"
RATE: Final = 40_000
_TURNS: Final = 6
BEFORE: Final = "streaming queries, matched when stored"
WAYS: Final = {
    BEFORE: ["feeds.streaming=true", "channels.arriving_bytes=0", "feeds.append_commit_ms=200"],
    "read when published, matched when stored": ["channels.arriving_bytes=0"],
    "a node that owns all slices": ["nodes.share=true"],
    "read when published, matched on arrival": [],
}
"""How a server can go about it, by settings; the last one is the default."""
EMBEDDED: Final = "embedded log"
KAFKA: Final = "log in Kafka"
Servers = Mapping[str, BenchServer]
"""By the name of the way; ratios are to the first one."""


def compare_delays(servers: Servers, seconds: float, group: str, say: Callable[[str], None]) -> list[Figure]:
    """How long results take at 100 records a second."""
    say(f"publishing 100 records/s to {len(servers)} servers in turns")
    probes = {way: LatencyProbe(server) for way, server in servers.items()}
    published: dict[str, list[str | int]] = {way: [] for way in probes}
    for probe in probes.values():
        probe.publish(WARM_SECONDS)
    for _ in range(_TURNS):
        for way, probe in probes.items():
            published[way] += probe.publish(seconds / _TURNS)
    delays = {way: probe.delays(published[way]) for way, probe in probes.items()}
    first, figures = next(iter(delays)), []
    for name, part in (("p50", 0.5), ("p95", 0.95)):
        before = quantile(delays[first][0], part)
        for way, (found, _) in delays.items():
            value = quantile(found, part)
            figures.append(Figure(group, f"{name}, {way}", value, "s", value / before, first))
    missing = sum(lost for _, lost in delays.values())
    late = [seconds for probe in probes.values() for seconds in probe.late]
    figures.append(Figure(group, "the publisher itself late, p99", quantile(late, 0.99), "s"))
    return [*figures, Figure(group, "records that never came", missing, "", target="0", met=missing == 0)]


def compare_rates(servers: Servers, seconds: float, say: Callable[[str], None]) -> dict[str, float]:
    """As many records a second as each takes, from the request into the dataset."""
    say(f"publishing as much as is taken to {len(servers)} servers in turns")
    for server in servers.values():
        server.apply(ingestion.APPLICATION)
        ingestion.publish(server, "reports", ingestion.bodies(20, 1))
    taken: dict[str, list[tuple[int, float]]] = {way: [] for way in servers}
    for turn in range(_TURNS):
        bodies = ingestion.bodies(max(int(seconds / _TURNS * RATE / ingestion.BATCH), 1), 2 + turn)
        for way, server in servers.items():
            sent, took, _ = ingestion.measure(server, "reports", bodies, RATE, seconds / _TURNS)
            taken[way].append((sent * ingestion.BATCH, took))
    return {way: sum(count for count, _ in some) / sum(took for _, took in some) for way, some in taken.items()}


def arrival(directory: Path, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """Latency at 100 records a second, and then as many records as are taken."""
    with ExitStack() as stack:
        say("starting a server for each way")
        servers = {
            way: stack.enter_context(BenchServer(directory / f"way-{number}", settings))
            for number, (way, settings) in enumerate(WAYS.items())
        }
        delays = compare_delays(servers, seconds, f"{LATENCY}, in turns", say)
        rates = compare_rates(servers, seconds, say)
        memory = {way: server.memory() / 2**20 for way, server in servers.items()}
    default, before = list(WAYS)[-1], rates[BEFORE]
    return [
        *delays,
        *(
            Figure(
                f"{INGESTION}, in turns",
                way,
                rate,
                "records/s",
                rate / before,
                BEFORE,
                *(("not slower", rate >= before) if way == default else ("", None)),
            )
            for way, rate in rates.items()
        ),
        *(Figure("memory of the process tree, after that", way, mib, "MiB") for way, mib in memory.items()),
    ]


def logs(directory: Path, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """Latency at 100 records a second, and as many records as are taken; nothing where there is no Kafka."""
    if not has_kafka():
        say("Kafka is not there: scripts/ensure-kafka fetches it")
        return []
    with ExitStack() as stack:
        say("starting Kafka, and a server for each log")
        kafka = stack.enter_context(kafka_server())
        jars = f'spark.extra={{ "spark.jars" = {json.dumps(connector_jars())} }}'
        settings = {EMBEDDED: [], KAFKA: [f"feeds.log=kafka://{kafka.servers}/bench", jars]}
        servers = {
            way: stack.enter_context(BenchServer(directory / f"log-{number}", chosen))
            for number, (way, chosen) in enumerate(settings.items())
        }
        delays = compare_delays(servers, seconds, f"{LATENCY}, by log, in turns", say)
        rates = compare_rates(servers, seconds, say)
    first = rates[EMBEDDED]
    group = f"{INGESTION}, by log, in turns"
    return [*delays, *(Figure(group, way, rate, "records/s", rate / first, EMBEDDED) for way, rate in rates.items())]

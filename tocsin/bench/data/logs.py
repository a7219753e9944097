"""The two logs that a feed may have: files, and a Kafka of one node that is started for it, published to in turns."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tocsin.bench.data.server import BenchServer
from tocsin.bench.data.ways import INGESTION, LATENCY, compare_delays, compare_rates
from tocsin.bench.report import Figure
from tocsin.local.kafka import connector_jars, has_kafka, kafka_server

EMBEDDED: Final = "embedded log"
KAFKA: Final = "log in Kafka"


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

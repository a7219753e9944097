"""What matching on arrival gains: a server that does it and one that works as before, published to in turns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tocsin.bench.data.server import BenchServer
from tocsin.bench.data.ways import INGESTION, LATENCY, compare_delays, compare_rates
from tocsin.bench.report import Figure

BEFORE: Final = "streaming queries, matched when stored"
WAYS: Final = {
    BEFORE: ["feeds.streaming=true", "channels.arriving_bytes=0", "feeds.append_commit_ms=200"],
    "read when published, matched when stored": ["channels.arriving_bytes=0"],
    "a node that owns all slices": ["nodes.share=true"],
    "read when published, matched on arrival": [],
}
"""How a server can go about it, by settings; the last one is the default."""


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

"""What matching on arrival gains: a server that does it and one that works as before, published to in turns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tocsin.bench.data import ingestion
from tocsin.bench.data.latency import WARM_SECONDS, LatencyProbe
from tocsin.bench.data.server import BenchServer
from tocsin.bench.report import Figure, quantile

BEFORE: Final = "streaming queries, matched when stored"
WAYS: Final = {
    BEFORE: ["feeds.streaming=true", "channels.arriving_bytes=0", "feeds.append_commit_ms=200"],
    "read when published, matched when stored": ["channels.arriving_bytes=0"],
    "read when published, matched on arrival": [],
}
"""How a server can go about it, by settings; the last one is the default."""
_LATENCY: Final = "publish → result ready, in turns"
_INGESTION: Final = "ingestion, HTTP to dataset, in turns"
_TURNS: Final = 6
_RATE: Final = 40_000


def arrival(directory: Path, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """Latency at 100 records a second, and then as many records as are taken."""
    with ExitStack() as stack:
        say("starting a server for each way")
        servers = {
            way: stack.enter_context(BenchServer(directory / f"way-{number}", settings))
            for number, (way, settings) in enumerate(WAYS.items())
        }
        return [*_latencies(servers, seconds, say), *_rates(servers, seconds, say)]


def _latencies(servers: dict[str, BenchServer], seconds: float, say: Callable[[str], None]) -> list[Figure]:
    say(f"publishing 100 records/s to {len(servers)} servers in turns")
    probes = {way: LatencyProbe(server) for way, server in servers.items()}
    published: dict[str, list[str]] = {way: [] for way in probes}
    for probe in probes.values():
        probe.publish(WARM_SECONDS)
    for _ in range(_TURNS):
        for way, probe in probes.items():
            published[way] += probe.publish(seconds / _TURNS)
    delays = {way: probe.delays(published[way]) for way, probe in probes.items()}
    figures = []
    for name, part in (("p50", 0.5), ("p95", 0.95)):
        before = quantile(delays[BEFORE][0], part)
        for way, (found, _) in delays.items():
            value = quantile(found, part)
            figures.append(Figure(_LATENCY, f"{name}, {way}", value, "s", value / before, BEFORE))
    missing = sum(lost for _, lost in delays.values())
    return [*figures, Figure(_LATENCY, "records that never came", missing, "", target="0", met=missing == 0)]


def _rates(servers: dict[str, BenchServer], seconds: float, say: Callable[[str], None]) -> list[Figure]:
    say(f"publishing as much as is taken to {len(servers)} servers in turns")
    for server in servers.values():
        server.apply(ingestion.APPLICATION)
        ingestion.publish(server, "reports", ingestion.bodies(20, 1))
    taken: dict[str, list[tuple[int, float]]] = {way: [] for way in servers}
    for turn in range(_TURNS):
        bodies = ingestion.bodies(max(int(seconds / _TURNS * _RATE / ingestion.BATCH), 1), 2 + turn)
        for way, server in servers.items():
            sent, took, _ = ingestion.measure(server, "reports", bodies, _RATE, seconds / _TURNS)
            taken[way].append((sent * ingestion.BATCH, took))
    rates = {way: sum(count for count, _ in some) / sum(took for _, took in some) for way, some in taken.items()}
    default, before = list(WAYS)[-1], rates[BEFORE]
    return [
        Figure(_INGESTION, way, rate, "records/s", rate / before, BEFORE, *_target(rate >= before, way == default))
        for way, rate in rates.items()
    ]


def _target(met: bool, judged: bool) -> tuple[str, bool | None]:
    return ("not slower", met) if judged else ("", None)

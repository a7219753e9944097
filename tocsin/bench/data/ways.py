"""Servers that go about the same in different ways, published to in turns: delays, and how much is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tocsin.bench.data import ingestion
from tocsin.bench.data.latency import WARM_SECONDS, LatencyProbe
from tocsin.bench.data.server import BenchServer
from tocsin.bench.report import Figure, quantile

LATENCY: Final = "publish → result ready"
INGESTION: Final = "ingestion, HTTP to dataset"
RATE: Final = 40_000
_TURNS: Final = 6
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

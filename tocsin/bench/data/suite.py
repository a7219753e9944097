"""The whole of ``tocsin bench data``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tocsin.bench.data.executions import executions, near
from tocsin.bench.data.ingestion import ingestion
from tocsin.bench.data.latency import latency, price_of_syncing
from tocsin.bench.data.nodes import nodes
from tocsin.bench.data.server import BenchServer
from tocsin.bench.data.ways import arrival, logs
from tocsin.bench.data.workers import workers
from tocsin.bench.report import Figure
from tocsin.data import session
from tocsin.settings import Settings

PARTS = ("ingestion", "latency", "arrival", "logs", "workers", "executions", "near", "nodes")


def run(
    settings: Settings, parts: list[str], sizes: list[int], seconds: float, say: Callable[[str], None]
) -> Iterator[Figure]:
    """Runs the parts asked for, in an order in which none disturbs another."""
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as name:
        directory = Path(name)
        if {"ingestion", "latency"} & set(parts):
            yield from _server_figures(directory, parts, seconds, say)
        if "arrival" in parts:
            yield from arrival(directory, seconds, say)
        if "logs" in parts:
            yield from logs(directory, seconds, say)
        if "workers" in parts:
            yield from workers(directory, seconds, say)
        if {"executions", "near", "nodes"} & set(parts):
            spark = session.start(settings.spark, directory / "scratch")
            if "executions" in parts:
                yield from executions(spark, directory, sizes, say)
            if "near" in parts:
                yield from near(spark, directory, say)
            if "nodes" in parts:
                yield from nodes(spark, directory / "nodes", say)
            spark.stop()


def _server_figures(directory: Path, parts: list[str], seconds: float, say: Callable[[str], None]) -> Iterator[Figure]:
    say("starting the server")
    with BenchServer(directory / "served") as server:
        yield Figure("memory of the process tree", "at rest, nothing created", server.memory() / 2**20, "MiB")
        if "latency" in parts:
            yield from latency(server, seconds, say)
            yield Figure("memory of the process tree", "after the latency run", server.memory() / 2**20, "MiB")
        if "ingestion" in parts:
            yield from ingestion(server, directory, seconds, say)
    if "latency" in parts:
        yield from price_of_syncing(directory, seconds, say)

"""From HTTP into the dataset: append and keyed records per second, publishers on the same machine."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from tocsin.bench.data.server import BenchServer
from tocsin.bench.report import Figure
from tocsin.client.operator import ServerCalls
from tocsin.errors import BusyError

APPLICATION = """
CREATE DATASET Reports (id STRING, etype STRING, severity INT, x DOUBLE, y DOUBLE, message STRING, at TIMESTAMP)
  PRIMARY KEY id;
CREATE KEYED DATASET Locations (userId STRING, x DOUBLE, y DOUBLE, at TIMESTAMP) PRIMARY KEY userId;
CREATE FEED reports INTO Reports SLICED BY id INTO 16 SLICES;
CREATE FEED locations INTO Locations SLICED BY userId INTO 16 SLICES;
"""
BATCH = 1000
_USERS = 100_000


def bodies(count: int, seed: int) -> list[bytes]:
    """NDJSON requests of 1,000 reports of 500 bytes each."""
    filler = "x" * 370
    line = (
        '{{"id":"{}-{}","etype":"fire","severity":3,"x":1234.5,"y":2345.6,"message":"{}","at":"2026-01-01T00:00:00Z"}}'
    )
    return [
        "\n".join(line.format(seed, turn * BATCH + i, filler) for i in range(BATCH)).encode() for turn in range(count)
    ]


def updates(count: int, seed: int) -> list[bytes]:
    """NDJSON requests of 1,000 places of different users each."""
    rng = np.random.default_rng(seed)
    line = '{{"userId":"u{}","x":{:.1f},"y":{:.1f},"at":"2026-01-01T00:00:00Z"}}'
    return [
        "\n".join(line.format(u, u % 977 + turn, u % 991) for u in rng.integers(0, _USERS, BATCH)).encode()
        for turn in range(count)
    ]


def ingestion(server: BenchServer, directory: Path, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """Publishes for some seconds and waits until all of it is stored."""
    server.apply(APPLICATION)
    figures = []
    for feed, make, rate, target in (
        ("reports", bodies, 40_000, 20_000),
        ("locations", updates, 10_500, 10_000),
    ):
        say(f"warming up {feed}")
        publish(server, feed, make(20, 1))
        say(f"publishing to {feed} for {seconds:.0f} s")
        before = server.memory()
        batches = make(int(seconds * rate / BATCH), 2)
        sent, stored, memory = measure(server, feed, batches, rate, seconds)
        total = sent * BATCH
        baseline = _bare(batches[:sent], directory / f"bare-{feed}") if feed == "reports" else None
        figures.append(
            Figure(
                "ingestion, HTTP to dataset",
                f"{feed} (500 B)" if feed == "reports" else f"{feed} (keyed, {_USERS:,} keys)",
                total / stored,
                "records/s",
                total / stored / baseline if baseline else None,
                "parse + Delta append, no server" if baseline else "",
                f"{target:,}/s sustained",
                total / stored >= target,
            )
        )
        figures.append(Figure("memory of the process tree", f"under {feed}", max(memory, before) / 2**20, "MiB"))
    return figures


def measure(server: BenchServer, feed: str, batches: list[bytes], rate: int, seconds: float) -> tuple[int, float, int]:
    """How many requests were taken, and how long until their records were in the dataset."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        publishing = pool.apply_async(_publish_from, (server.url, server.token, feed, batches, rate, seconds))
        memory = 0
        while not publishing.ready():
            memory = max(memory, server.memory())
            publishing.wait(1)
        began, sent = publishing.get()
    server.wait_stored()
    return sent, time.time() - began, memory


def _publish_from(
    url: str, token: str, feed: str, batches: list[bytes], rate: int, seconds: float
) -> tuple[float, int]:
    """Publishes at most at ``rate`` records a second, in a process of its own; when it began, how many batches."""
    began = time.time()
    sent = 0
    with ServerCalls(url, token, seconds=60) as calls:
        for body in batches:
            if time.time() - began > seconds:
                break
            ahead = sent * BATCH / rate - (time.time() - began)
            if ahead > 0:
                time.sleep(ahead)
            _send(calls, feed, body)
            sent += 1
    return began, sent


def publish(server: BenchServer, feed: str, batches: list[bytes]) -> None:
    with server.calls() as calls:
        for body in batches:
            _send(calls, feed, body)
    server.wait_stored()


def _send(calls: ServerCalls, feed: str, body: bytes) -> None:
    """Publishes a batch, as soon as there is room for it."""
    while True:
        try:
            calls.call("POST", f"/feeds/{feed}", content=body, headers={"content-type": "application/x-ndjson"})
        except BusyError:
            time.sleep(0.1)
        else:
            return


def _bare(batches: list[bytes], path: Path) -> float:
    """Records per second without server, log and Spark: the lines parsed by Arrow and appended to a Delta table."""
    from pyarrow import json

    began = time.perf_counter()
    for start in range(0, len(batches), 10):
        body = b"\n".join(batches[start : start + 10])
        write_deltalake(str(path), json.read_json(pa.BufferReader(body)), mode="append")
    return len(batches) * BATCH / (time.perf_counter() - began)

"""Processing nodes in processes of their own: what one, two and three of them take, and what a move of slices costs.

All of them share this machine's cores: more nodes than cores cannot take more, and show what sharing costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from tocsin.bench.data import ingestion
from tocsin.bench.data.latency import WARM_SECONDS, LatencyProbe
from tocsin.bench.data.server import BenchServer, end, start_tocsin
from tocsin.bench.data.ways import INGESTION, LATENCY, RATE
from tocsin.bench.report import Figure, quantile
from tocsin.errors import UnavailableError
from tocsin.model.slices import SlicesStatus

_ALONE: Final = "the data cluster by itself"
_MOST: Final = 3
_JOIN_SECONDS: Final = 180.0
_DELAYS: Final = f"{LATENCY}, matched by workers"


def workers(directory: Path, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """A data cluster by itself, and one that leaves all to workers, of which one after the other comes."""
    with BenchServer(directory / "alone") as server:
        say("publishing to a data cluster by itself")
        alone = _rate(server, seconds)
    with ExitStack() as stack:
        shared = stack.enter_context(BenchServer(directory / "shared", ["nodes.share=true", "nodes.local=false"]))
        say("starting a worker")
        stack.enter_context(_worker(directory, shared, 1))
        delays = _delays(shared, seconds, lambda: stack.enter_context(_worker(directory, shared, 2)), say)
        rates = {2: _rate(shared, seconds)}
        for number in range(3, _MOST + 1):
            stack.enter_context(_worker(directory, shared, number))
            rates[number] = _rate(shared, seconds)
        _drain(shared, [f"bench-{number}" for number in range(2, _MOST + 1)])
        rates[1] = _rate(shared, seconds)
    group = f"{INGESTION}, by workers"
    figures = [Figure(group, _ALONE, alone, "records/s")]
    figures += [
        Figure(
            group,
            f"{number} worker{'s' if number > 1 else ''}",
            rates[number],
            "records/s",
            rates[number] / alone,
            _ALONE,
        )
        for number in sorted(rates)
    ]
    return [*figures, *delays]


def _rate(server: BenchServer, seconds: float) -> float:
    server.apply(ingestion.APPLICATION)
    seed = int(time.time())
    ingestion.publish(server, "reports", ingestion.bodies(20, seed))
    bodies = ingestion.bodies(max(int(seconds * RATE / ingestion.BATCH), 1), seed + 1)
    sent, took, _ = ingestion.measure(server, "reports", bodies, RATE, seconds)
    return sent * ingestion.BATCH / took


def _delays(
    server: BenchServer, seconds: float, join: Callable[[], object], say: Callable[[str], None]
) -> list[Figure]:
    """How long results take with one worker, and while a second one starts and is given its share."""
    say("publishing 100 records/s to one worker")
    probe = LatencyProbe(server)
    probe.publish(WARM_SECONDS)
    resting = probe.publish(seconds)
    say("publishing while a second worker comes")
    moving = list[str]()
    with ThreadPoolExecutor(1) as pool:
        joined = pool.submit(join)
        while not joined.done():
            moving += probe.publish(1.0)
        moving += probe.publish(5.0)
        joined.result()
    missing = probe.delays([*resting, *moving])[1]
    figures = []
    for name, ids in (("one worker", resting), ("while slices move to a second", moving)):
        delays, _ = probe.delays(ids)
        figures += [
            Figure(_DELAYS, f"p50, {name}", quantile(delays, 0.5), "s"),
            Figure(_DELAYS, f"p99, {name}", quantile(delays, 0.99), "s"),
        ]
    return [*figures, Figure(_DELAYS, "records that never came", missing, "", target="0", met=missing == 0)]


@contextmanager
def _worker(directory: Path, server: BenchServer, number: int) -> Iterator[None]:
    """A worker, once it has slices, if any feed is shared."""
    name, log = f"bench-{number}", directory / f"worker-{number}.log"
    settings = ["log.level=warning", f"worker.scratch={directory}"]
    command = ("worker", "--name", name, "--head", server.url)
    process = start_tocsin(log, settings, *command, TOCSIN_WORKER_TOKEN=server.token)
    try:
        _wait(server, lambda status: _has_slices(status, name), f"worker {name} to get slices; see {log}")
        yield
    finally:
        end(process)


def _has_slices(status: SlicesStatus, name: str) -> bool:
    """Whether it has some; of a feed for which nothing comes it need not have any."""
    return _has_some(status, name) or not any(feed.shared for feed in status.feeds)


def _drain(server: BenchServer, names: list[str]) -> None:
    with server.calls() as calls:
        for name in names:
            calls.call("PUT", f"/nodes/{name}/draining", json={"on": True})
    _wait(server, lambda status: not any(_has_some(status, name) for name in names), "workers to be empty")


def _has_some(status: SlicesStatus, name: str) -> bool:
    return any(node.name == name and node.slices for feed in status.feeds for node in feed.nodes)


def _wait(server: BenchServer, condition: Callable[[SlicesStatus], bool], what: str) -> None:
    deadline = time.monotonic() + _JOIN_SECONDS
    with server.calls() as calls:
        while not condition(msgspec.json.decode(calls.call("GET", "/slices"), type=SlicesStatus)):
            if time.monotonic() > deadline:
                raise UnavailableError(f"waited {_JOIN_SECONDS:.0f} s for {what}")
            time.sleep(0.1)

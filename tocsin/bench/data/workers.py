"""Processing nodes in processes of their own: what one, two and three of them take, and what a move of slices costs.

All of them share this machine's cores: more nodes than cores cannot take more, and show what sharing costs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tocsin.bench.data import ingestion
from tocsin.bench.data.moves import LOCAL, drain, has_some, moves, wait_for
from tocsin.bench.data.server import BenchServer, end, start_tocsin
from tocsin.bench.data.ways import INGESTION, RATE
from tocsin.bench.report import Figure
from tocsin.model.slices import SlicesStatus

_ALONE: Final = "the data cluster by itself"
_GROUP: Final = f"{INGESTION}, by workers"
_ROUND_SECONDS: Final = 1
_SHARED: Final = "shared"


def workers(directory: Path, seconds: float, say: Callable[[str], None]) -> list[Figure]:
    """A data cluster by itself; one that shares with two workers; one that leaves all to one, two and three workers."""
    alone = _alone(directory, seconds, say)
    with _two_workers(directory, say) as (server, third):
        costs = moves(server, directory / _SHARED, ["bench-1", "bench-2"], seconds, say)
        rates = _rates(server, seconds, third, say)
    figures = [Figure(_GROUP, _ALONE, alone, "records/s")]
    for number, rate in sorted(rates.items()):
        name = f"{number} worker{'s' if number > 1 else ''}, on {os.cpu_count()} cores"
        figures.append(Figure(_GROUP, name, rate, "records/s", rate / alone, _ALONE))
    return [*figures, *costs]


def throughput(directory: Path, seconds: float, say: Callable[[str], None]) -> dict[int, float]:
    """Records a second by the number of workers, without those costs; 0: a data cluster by itself, nothing shared."""
    alone = _alone(directory, seconds, say)
    with _two_workers(directory, say) as (server, third):
        _warm(server)
        return {0: alone, **_rates(server, seconds, third, say)}


def _alone(directory: Path, seconds: float, say: Callable[[str], None]) -> float:
    with BenchServer(directory / "alone") as server:
        say("publishing to a data cluster by itself")
        return _rate(server, seconds)


@contextmanager
def _two_workers(directory: Path, say: Callable[[str], None]) -> Iterator[tuple[BenchServer, Callable[[], None]]]:
    """A data cluster that shares with two workers; and what starts a third."""
    with ExitStack() as stack:
        settings = ["nodes.share=true", f"nodes.round_seconds={_ROUND_SECONDS}"]
        server = stack.enter_context(BenchServer(directory / _SHARED, settings))

        def start(number: int) -> None:
            say(f"starting worker {number}")
            stack.enter_context(_worker(directory, server, number))

        for number in (1, 2):
            start(number)
        yield server, lambda: start(3)


def _warm(server: BenchServer) -> None:
    """Both workers have slices, and have processed some."""
    server.apply(ingestion.APPLICATION)
    names = [LOCAL, "bench-1", "bench-2"]
    publishing = ingestion.bodies(20, int(time.time()))
    wait_for(server, lambda status: _have_joined(server, publishing, status, names), "workers to get slices")


def _have_joined(server: BenchServer, publishing: list[bytes], status: SlicesStatus, names: list[str]) -> bool:
    """Nobody gets slices for which nothing comes."""
    ingestion.publish(server, "reports", publishing)
    return all(has_some(status, name) for name in names)


def _rates(
    server: BenchServer, seconds: float, third: Callable[[], None], say: Callable[[str], None]
) -> dict[int, float]:
    """Records a second by the number of workers, while the data cluster's own node has nothing.

    With one worker at last: it is the one that has run for longest.
    """
    drain(server, LOCAL)
    wait_for(server, lambda status: not has_some(status, LOCAL), f"{LOCAL} to be empty")
    say("publishing as much as two workers take")
    rates = {2: _rate(server, seconds)}
    say("publishing as much as three workers take")
    third()
    rates[3] = _rate(server, seconds)
    say("publishing as much as one worker takes")
    names = ["bench-2", "bench-3"]
    drain(server, *names)
    wait_for(server, lambda status: not any(has_some(status, name) for name in names), "workers to be empty")
    rates[1] = _rate(server, seconds)
    return rates


def _rate(server: BenchServer, seconds: float) -> float:
    server.apply(ingestion.APPLICATION)
    seed = int(time.time())
    ingestion.publish(server, "reports", ingestion.bodies(20, seed))
    bodies = ingestion.bodies(max(int(seconds * RATE / ingestion.BATCH), 1), seed + 1)
    sent, took, _ = ingestion.measure(server, "reports", bodies, RATE, seconds)
    return sent * ingestion.BATCH / took


@contextmanager
def _worker(directory: Path, server: BenchServer, number: int) -> Iterator[None]:
    """A worker, once it has slices, if any feed is shared."""
    name, log = f"bench-{number}", directory / f"worker-{number}.log"
    settings = ["log.level=warning", f"worker.scratch={directory}"]
    command = ("worker", "--name", name, "--head", server.url)
    process = start_tocsin(log, settings, *command, TOCSIN_WORKER_TOKEN=server.token)
    try:
        wait_for(server, lambda status: _has_joined(status, name), f"worker {name} to get slices; see {log}")
        yield
    finally:
        end(process)


def _has_joined(status: SlicesStatus, name: str) -> bool:
    """Whether it has some; of a feed for which nothing comes it need not have any."""
    return has_some(status, name) or not any(feed.shared for feed in status.feeds)

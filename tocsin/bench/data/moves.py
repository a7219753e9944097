"""What a move of a slice costs: how long it pauses, beside the time between its commits while it stays where it is."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from tocsin.bench.data.latency import WARM_SECONDS, LatencyProbe, ProbedFeed
from tocsin.bench.data.server import BenchServer
from tocsin.bench.data.ways import LATENCY
from tocsin.bench.report import Figure, quantile
from tocsin.errors import UnavailableError
from tocsin.model.slices import SlicesStatus

LOCAL: Final = "data"
_SLICES: Final = 48
_APPLICATION: Final = f"""
CREATE DATASET Ticks (id BIGINT, etype STRING, message STRING) PRIMARY KEY id;
CREATE FEED ticks INTO Ticks SLICED BY id USING modulo INTO {_SLICES} SLICES;
CREATE CONTINUOUS CHANNEL TicksOfType(event STRING) AS SELECT t.* FROM Ticks t WHERE t.etype = event AND is_new(t);
"""
_TICKS: Final = ProbedFeed(_APPLICATION, "ticks", "TicksOfType", _SLICES, lambda request, i: request * _SLICES + i)
"""With every request something comes for every slice, so that a slice that is not committed pauses."""
_JOIN_SECONDS: Final = 180.0
_LOOK_SECONDS: Final = 0.1
_ROUNDS: Final = 20
_TIMES: Final = 4
_DELAYS: Final = f"{LATENCY}, matched by nodes, {10 * _SLICES} records/s"
_PAUSES: Final = "a slice that moves"


def moves(
    server: BenchServer, directory: Path, workers: Sequence[str], seconds: float, say: Callable[[str], None]
) -> list[Figure]:
    """The data cluster's own node is emptied and gets its share again, by turns, while data flows.

    Args:
        directory: the server's.
        workers: with whom it shares; they may be just starting.
    """
    say(f"publishing {10 * _SLICES} records/s, while slices stay where they are")
    probe = LatencyProbe(server, _TICKS)
    deadline = time.monotonic() + _JOIN_SECONDS
    while not all(has_some(slices_status(server), name) for name in (LOCAL, *workers)):
        if time.monotonic() > deadline:
            raise UnavailableError(f"waited {_JOIN_SECONDS:.0f} s for {', '.join(workers)} to get slices")
        probe.publish(1.0)
    probe.publish(WARM_SECONDS)
    began = time.time()
    resting = probe.publish(seconds)
    stays = intervals(directory / "datasets" / "Ticks" / "_delta_log", began)
    say("publishing while slices move")
    moving = list[str | int]()
    with watch_pauses(server) as pauses, ThreadPoolExecutor(1) as pool:
        to_and_fro = pool.submit(_move, server, seconds * _TIMES)
        while not to_and_fro.done():
            moving += probe.publish(1.0)
        sessions = to_and_fro.result()
        moving += probe.publish(3.0)
    delays = {name: probe.delays(ids) for name, ids in (("they move", moving), ("slices stay", resting))}
    return [*_delay_figures(delays), *_pause_figures([seconds for _, seconds in pauses], sessions, stays)]


def intervals(log: Path, since: float) -> list[float]:
    """The seconds between two commits of the same slice, of all slices, as a table's log has them."""
    last, found = dict[str, float](), list[float]()
    for entry in sorted(log.glob("*.json")):
        actions = [json.loads(line) for line in entry.read_bytes().splitlines()]
        at = next(action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action) / 1000
        if at < since:
            continue
        for name in (action["txn"]["appId"] for action in actions if "txn" in action):
            if not name.startswith("slice-"):
                continue
            if name in last:
                found.append(at - last[name])
            last[name] = at
    return found


@contextmanager
def watch_pauses(server: BenchServer) -> Iterator[set[tuple[int, float]]]:
    """Slices and how long they paused, for each move while the block lasts."""
    pauses, over = set[tuple[int, float]](), threading.Event()
    before = {(one.slice, one.pause) for feed in slices_status(server).feeds for one in feed.slices}

    def look() -> None:
        while not over.wait(_LOOK_SECONDS):
            found = (one for feed in slices_status(server).feeds for one in feed.slices)
            pauses.update(
                (one.slice, one.pause)
                for one in found
                if one.pause is not None and (one.slice, one.pause) not in before
            )

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield pauses
        finally:
            over.set()
    looking.result()


def slices_status(server: BenchServer) -> SlicesStatus:
    """Who has which slices."""
    with server.calls() as calls:
        return msgspec.json.decode(calls.call("GET", "/slices"), type=SlicesStatus)


def drain(server: BenchServer, *names: str, on: bool = True) -> None:
    """Has nodes emptied, or lets them have slices again; returns at once."""
    with server.calls() as calls:
        for name in names:
            calls.call("PUT", f"/nodes/{name}/draining", json={"on": on})


def has_some(status: SlicesStatus, name: str) -> bool:
    """Whether a node has slices of any feed."""
    return any(node.name == name and node.slices for feed in status.feeds for node in feed.nodes)


def wait_for(server: BenchServer, condition: Callable[[SlicesStatus], bool], what: str) -> None:
    """Waits until the slices are where they are to be."""
    deadline = time.monotonic() + _JOIN_SECONDS
    while not condition(slices_status(server)):
        if time.monotonic() > deadline:
            raise UnavailableError(f"waited {_JOIN_SECONDS:.0f} s for {what}")
        time.sleep(_LOOK_SECONDS)


def _move(server: BenchServer, seconds: float) -> int:
    """Slices go from and to the data cluster's own node for a while; how many times that was."""
    deadline, turns = time.monotonic() + seconds, 0
    while turns < 2 * _ROUNDS and time.monotonic() < deadline:
        drain(server, LOCAL)
        wait_for(server, lambda status: not has_some(status, LOCAL), f"{LOCAL} to be empty")
        drain(server, LOCAL, on=False)
        wait_for(server, lambda status: has_some(status, LOCAL) and not _is_moving(status), f"{LOCAL} to get slices")
        turns += 2
    return turns


def _is_moving(status: SlicesStatus) -> bool:
    return any(one.taker is not None for feed in status.feeds for one in feed.slices)


def _delay_figures(delays: dict[str, tuple[list[float], int]]) -> list[Figure]:
    resting, figures = delays["slices stay"][0], []
    for name in ("slices stay", "they move"):
        for part, q in (("p50", 0.5), ("p99", 0.99)):
            value, before = quantile(delays[name][0], q), quantile(resting, q)
            figures.append(Figure(_DELAYS, f"{part}, while {name}", value, "s", value / before, "while slices stay"))
    missing = sum(lost for _, lost in delays.values())
    return [*figures, Figure(_DELAYS, "records that never came", missing, "", target="0", met=missing == 0)]


def _pause_figures(pauses: list[float], turns: int, stays: list[float]) -> list[Figure]:
    if not pauses or not stays:
        raise UnavailableError(f"no slice has moved ({len(pauses)} pauses), or none has stayed ({len(stays)} commits)")
    p50, p99 = quantile(pauses, 0.5), quantile(pauses, 0.99)
    usual = {q: quantile(stays, q) for q in (0.5, 0.99)}
    other = "between two commits of a slice that stays"
    return [
        Figure(_PAUSES, "moves", len(pauses), f"in {turns} turns"),
        Figure(_PAUSES, "from the giver's last commit to the taker's first, p50", p50, "s", p50 / usual[0.5], other),
        Figure(_PAUSES, "the same, p99", p99, "s", p99 / usual[0.99], other, "≤ 1 s", p99 <= 1.0),
        Figure(_PAUSES, "the same, longest", max(pauses), "s"),
        Figure(_PAUSES, f"{other}, p50", usual[0.5], "s"),
        Figure(_PAUSES, f"{other}, p99", usual[0.99], "s"),
    ]

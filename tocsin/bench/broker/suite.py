"""The whole of ``tocsin bench broker``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tocsin.bench.broker.fanout import PEERS, fanout
from tocsin.bench.broker.latency import latency
from tocsin.bench.broker.members import members
from tocsin.bench.broker.migration import migration
from tocsin.bench.broker.processes import apart, check_files, find_program
from tocsin.bench.broker.publishing import publishing
from tocsin.bench.report import Figure

PARTS = ("fanout", "members", "migration", "publishing", "latency")
MEMBERS, MOVED, PUBLISHERS, SERVED = 10_000, 1_000, 3_000, 400


def run(
    parts: Sequence[str], sizes: Sequence[int], rounds: int, seconds: float, peers: bool, say: Callable[[str], None]
) -> Iterator[Figure]:
    """Runs the parts asked for, each with servers of its own; what they need is checked before they begin."""
    if "fanout" in parts:
        check_files(max(sizes))
        for peer in PEERS if peers else ():
            find_program(peer.program)
    if "members" in parts:
        check_files(MEMBERS)
    if "publishing" in parts:
        check_files(PUBLISHERS)
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as name:
        directory = Path(name)
        for part in PARTS:
            (directory / part).mkdir()
        with apart() as cores:
            if "fanout" in parts:
                yield from fanout(directory / "fanout", cores, sizes, rounds, PEERS if peers else (), say)
            if "members" in parts:
                yield from members(directory / "members", cores, MEMBERS, say)
            if "migration" in parts:
                yield from migration(directory / "migration", cores, MOVED, seconds, say)
            if "publishing" in parts:
                yield from publishing(cores, PUBLISHERS, min(seconds, 10.0), say)
        if "latency" in parts:
            yield from latency(directory / "latency", SERVED, seconds, say)

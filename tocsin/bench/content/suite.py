"""The whole of ``tocsin bench content``: everybody matches the same publications, and finds the same."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np

from tocsin.apps.stocks.quotes import Quotes
from tocsin.bench.content.contestant import Contestant, Entry, Inserted
from tocsin.bench.content.workload import ContentWorkload, write_workload
from tocsin.bench.report import Figure, median
from tocsin.content.table import Int64s
from tocsin.errors import UnavailableError

Say = Callable[[str], None]
FindPeers = Callable[[Path, Say], Iterable[Entry]]

_CHECKED: Final = 100
_UNIT: Final = "publications/s"
# What is expected on one core, by how many subscriptions there are: publications per second, and multiples of the scan.
_LEAST: Final = {100_000: 20_000.0}
_TIMES_NAIVE: Final = {100_000: 50.0}


def _ours(name: str, matcher: str) -> Entry:
    return Entry(name, [sys.executable, "-m", "tocsin.bench.content.worker", matcher])


TOCSIN: Final = _ours("Tocsin", "engine")
NAIVE: Final = _ours("naive scan", "scan")
POSET: Final = _ours("poset", "poset")


class Bench:
    """How to measure.

    Args:
        turns: figures are medians over so many.
        seconds: how long a turn takes, and how long others than ours are compared with ours.
        limit: seconds after which others give up inserting, and are left out of the matching.
        say: is told what is being done.
        note: is told who is left out, and why.
    """

    def __init__(self, turns: int, seconds: float, limit: float, say: Say, note: Say) -> None:
        self._turns, self._seconds, self._limit = turns, seconds, limit
        self._say, self._note = say, note

    def run(self, sizes: Sequence[int], quotes: Quotes, seed: int, find_peers: FindPeers) -> Iterator[Figure]:
        """All sizes in turn, with the first so many of the same subscriptions.

        The peers are looked for first; what has to be built for them may go into the directory that is given.
        """
        with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as name:
            self._say("building the peers")
            peers = list(find_peers(Path(name), self._note))
            self._say(f"drawing {max(sizes):,} subscriptions")
            workload = write_workload(Path(name), quotes, max(sizes), seed)
            for size in sizes:
                yield from self._measure(size, workload, [TOCSIN, NAIVE, POSET, *peers])

    def _measure(self, size: int, workload: ContentWorkload, entries: Sequence[Entry]) -> Iterator[Figure]:
        inserted: dict[str, Inserted] = {}
        complete: dict[str, Contestant] = {}
        with ExitStack() as stack:
            for entry in entries:
                self._say(f"inserting {size:,} subscriptions into {entry.name}")
                limit = np.inf if entry is TOCSIN else self._limit
                log = workload.subscriptions.with_name(f"{entry.name}.log")
                contestant = stack.enter_context(Contestant(entry, workload, size, limit, log))
                inserted[entry.name] = contestant.await_inserted()
                if inserted[entry.name].subscriptions == size:
                    complete[entry.name] = contestant
                    continue
                contestant.close()
                self._note(
                    f"{entry.name} has inserted {inserted[entry.name].subscriptions:,} of {size:,} subscriptions in "
                    f"{self._limit:g} s, and is left out of the matching"
                )
            found = self._compare(size, complete)
            rates = self._take_turns(size, complete)
        yield Figure(_matching(size), "matches of a publication", found, "on average")
        yield from _rates(size, rates)
        yield from _insertion(size, inserted)

    def _compare(self, size: int, contestants: Mapping[str, Contestant]) -> float:
        """How many a publication matches on average; that others find something else is an error."""
        ours = contestants[TOCSIN.name]
        self._say(f"comparing what {size:,} subscriptions match")
        expected = [ours.match(publication) for publication in range(_CHECKED)]
        for name, contestant in contestants.items():
            if contestant is not ours:
                _check(name, contestant, expected, self._seconds)
        return float(np.mean([len(matched) for matched in expected]))

    def _take_turns(self, size: int, contestants: Mapping[str, Contestant]) -> dict[str, float]:
        """Everybody's publications per second, turn by turn, after one turn to warm up."""
        rates: dict[str, list[float]] = {name: [] for name in contestants}
        for turn in range(self._turns + 1):
            self._say(f"matching with {size:,} subscriptions, turn {turn} of {self._turns}")
            for name, contestant in contestants.items():
                rates[name].append(contestant.turn(self._seconds))
        return {name: median(measured[1:]) for name, measured in rates.items()}


def _check(name: str, contestant: Contestant, expected: Sequence[Int64s], seconds: float) -> None:
    """Compares for so long, but one publication at least."""
    began = time.monotonic()
    for publication, ours in enumerate(expected):
        theirs = contestant.match(publication)
        if not np.array_equal(ours, theirs):
            raise UnavailableError(_difference(name, publication, ours, theirs))
        if time.monotonic() - began > seconds:
            return


def _difference(name: str, publication: int, ours: Int64s, theirs: Int64s) -> str:
    missing, more = np.setdiff1d(ours, theirs), np.setdiff1d(theirs, ours)
    return (
        f"publication {publication} matches {len(ours):,} subscriptions, and {len(theirs):,} by {name}: "
        f"{len(missing):,} are missing {missing[:3].tolist()}, {len(more):,} are too many {more[:3].tolist()}"
    )


def _rates(size: int, rates: Mapping[str, float]) -> Iterator[Figure]:
    """Ours with its target, then each of the others, and ours beside it."""
    group, ours = _matching(size), rates[TOCSIN.name]
    least = _LEAST.get(size)
    said = f"at least {least:,.0f}" if least else ""
    yield Figure(group, TOCSIN.name, ours, _UNIT, target=said, met=ours >= least if least else None)
    for name, rate in rates.items():
        if name == TOCSIN.name:
            continue
        yield Figure(group, name, rate, _UNIT)
        ratio = ours / rate
        times = _TIMES_NAIVE.get(size) if name == NAIVE.name else None
        said = f"at least {times:g}×" if times else ""
        yield Figure(group, TOCSIN.name, ours, _UNIT, ratio, name, said, ratio >= times if times else None)


def _insertion(size: int, inserted: Mapping[str, Inserted]) -> Iterator[Figure]:
    """Time and memory of a subscription; of those who gave up, of as many as they have inserted.

    The scan has nothing to insert into, and its first publication would take nearly all of the time.
    """
    names = {
        name: name if one.subscriptions == size else f"{name}, the first {one.subscriptions:,}"
        for name, one in inserted.items()
    }
    for name, one in inserted.items():
        if name != NAIVE.name:
            each = 1e6 * one.seconds / one.subscriptions
            yield Figure(f"{size:,} subscriptions: insertion", names[name], each, "µs each")
    for name, one in inserted.items():
        yield Figure(f"{size:,} subscriptions: memory", names[name], one.bytes / one.subscriptions, "B each")


def _matching(size: int) -> str:
    return f"{size:,} subscriptions: matching"

"""One of our own contestants, in a process of its own: ``python -m tocsin.bench.content.worker NAME …``.

:mod:`~tocsin.bench.content.contestant` says what it is told, and what it answers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from tocsin.bench.content.workload import read_publications, read_subscriptions
from tocsin.content.engine import Engine
from tocsin.content.filter import Filter
from tocsin.content.poset import Poset
from tocsin.content.table import Int64s
from tocsin.content.values import Publication

_BATCH: Final = 1000


class Matcher(Protocol):
    """What finds the subscriptions that a publication matches."""

    def add(self, number: int, filter: Filter) -> None:
        """Takes one more subscription."""

    def match(self, publication: Publication) -> Int64s:
        """The numbers of all that match, in no order."""


class Scan:
    """The naive way: every publication is held against every subscription."""

    def __init__(self) -> None:
        self._filters: list[tuple[int, Filter]] = []

    def add(self, number: int, filter: Filter) -> None:
        """See :class:`Matcher`."""
        self._filters.append((number, filter))

    def match(self, publication: Publication) -> Int64s:
        """See :class:`Matcher`."""
        return np.array([number for number, filter in self._filters if filter.matches(publication)], np.int64)


class Ordered:
    """The poset, in which equal subscriptions are one filter."""

    def __init__(self) -> None:
        self._poset = Poset()
        self._numbers: dict[Filter, list[int]] = {}

    def add(self, number: int, filter: Filter) -> None:
        """See :class:`Matcher`."""
        self._poset.insert(filter)
        self._numbers.setdefault(filter, []).append(number)

    def match(self, publication: Publication) -> Int64s:
        """See :class:`Matcher`."""
        found = self._poset.matching(publication)
        return np.array([number for filter in found for number in self._numbers[filter]], np.int64)


MATCHERS: Final[Mapping[str, Callable[[], Matcher]]] = {"engine": Engine, "scan": Scan, "poset": Ordered}


def main(arguments: Sequence[str]) -> None:
    """Inserts the subscriptions, then does what it is told until there is nothing more."""
    name, subscriptions, publications, count, limit = arguments
    matcher, published = MATCHERS[name](), read_publications(Path(publications))
    before = _resident()
    filters = read_subscriptions(Path(subscriptions), int(count))
    inserted, seconds = _insert(matcher, filters, published[0], float(limit))
    _answer(inserted, seconds, _resident() - before)
    stream = cycle(published)
    for command in sys.stdin:
        match command.split():
            case ["match", at]:
                _answer(*matcher.match(published[int(at)]).tolist())
            case ["turn", limit]:
                _answer(*_turn(matcher, stream, float(limit)))


def _insert(matcher: Matcher, filters: Iterator[Filter], first: Publication, limit: float) -> tuple[int, float]:
    """How many were inserted in how many seconds, until the first publication was matched."""
    inserted, seconds = 0, 0.0
    while seconds < limit and (batch := list(islice(filters, _BATCH))):
        began = time.process_time()
        for number, filter in enumerate(batch, inserted):
            matcher.add(number, filter)
        seconds += time.process_time() - began
        inserted += len(batch)
    began = time.process_time()
    matcher.match(first)
    return inserted, seconds + time.process_time() - began


def _turn(matcher: Matcher, stream: Iterator[Publication], limit: float) -> tuple[int, float]:
    """How many publications were matched in how many seconds."""
    began, matched, seconds = time.process_time(), 0, 0.0
    while not matched or seconds < limit:
        matcher.match(next(stream))
        matched, seconds = matched + 1, time.process_time() - began
    return matched, seconds


def _resident() -> int:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _answer(*values: float) -> None:
    print(*values, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

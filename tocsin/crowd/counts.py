"""What happens to the people of a process, counted as it happens."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from tocsin.client.note import Note
from tocsin.crowd.delays import Stopwatch
from tocsin.crowd.messages import Compared, CrowdFigures
from tocsin.crowd.receipts import Order, Receipts

# Of the newest reports it is known when they were acknowledged, and of how many who was told before that was known.
MOST_REPORTS: Final = 100_000
MOST_UNKNOWN: Final = 10_000


class _Report(msgspec.Struct):
    id: str = ""


_REPORTS: Final = msgspec.json.Decoder(list[_Report])


class Waits:
    """How long people waited for reports, from the acknowledgement on.

    What executions find may reach a process before the word that the report was acknowledged. A report of an earlier
    run is never acknowledged in this one, and does not count.
    """

    def __init__(self) -> None:
        self.stopwatch = Stopwatch()
        self._acknowledged: dict[str, float] = {}
        self._unknown: dict[str, list[float]] = {}

    def acknowledge(self, reports: Sequence[str], at: float) -> None:
        """Reports were acknowledged then."""
        for report in reports:
            self._acknowledged[report] = at
            for told in self._unknown.pop(report, ()):
                self.stopwatch.add(told - at)
        _keep_newest(self._acknowledged, MOST_REPORTS)

    def tell(self, report: str, now: float) -> None:
        """Somebody is told of a report."""
        at = self._acknowledged.get(report)
        if at is not None:
            self.stopwatch.add(now - at)
            return
        self._unknown.setdefault(report, []).append(now)
        _keep_newest(self._unknown, MOST_UNKNOWN)


class CrowdCounts:
    """Counts from nothing."""

    def __init__(self) -> None:
        self.published: Counter[str] = Counter()
        self.logouts = self.unsubscribed = self.withheld = self.moved = self.lost_connections = 0
        self.waits = Waits()
        self.answers, self.late, self.lags = Stopwatch(), Stopwatch(), Stopwatch()
        self._receipts = Receipts()
        self._orders: Counter[Order] = Counter()
        self._held = self._notifications = self._bytes = 0

    def hold(self, who: str, subscription: int, after: int) -> None:
        """Somebody has subscribed, or is back, and has had the executions up to ``after``."""
        self._held += self._receipts.hold(who, subscription, after)

    def give_up(self, who: str, subscription: int) -> None:
        """Somebody has unsubscribed."""
        self.unsubscribed += 1
        self._receipts.give_up(who, subscription)

    def receive(self, who: str, note: Note) -> None:
        """Somebody got a note; the client library should never give one twice, or an older one after a newer."""
        order = self._receipts.add(who, note.subscription, note.execution)
        self._orders[order] += 1
        self._notifications += 1
        self._bytes += len(note.payload)
        if order is Order.NEW and not note.recovered:
            now = time.monotonic()
            for report in _REPORTS.decode(note.payload):
                self.waits.tell(report.id, now)

    def compare(self, found: Mapping[int, Sequence[int]], there: Mapping[str, Collection[int]]) -> Compared:
        """What is missing of what was found, to those who are there."""
        return self._receipts.compare(found, there)

    def figures(self) -> CrowdFigures:
        """How it stands."""
        return CrowdFigures(
            held=self._held,
            logouts=self.logouts,
            unsubscribed=self.unsubscribed,
            notifications=self._notifications,
            bytes=self._bytes,
            published=dict(self.published),
            withheld=self.withheld,
            moved=self.moved,
            lost_connections=self.lost_connections,
            duplicates=self._orders[Order.TWICE],
            disordered=self._orders[Order.LATE],
            again=self._orders[Order.AGAIN],
            waits=self.waits.stopwatch.delays(),
            answers=self.answers.delays(),
            late=self.late.delays(),
            lags=self.lags.delays(),
        )


def _keep_newest(known: dict[str, object] | dict[str, float] | dict[str, list[float]], most: int) -> None:
    while len(known) > most:
        del known[next(iter(known))]

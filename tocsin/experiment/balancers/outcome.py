"""What a balancer has made of a set-up, in numbers: from its rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import mean, pstdev
from typing import Final, NamedTuple

from tocsin.experiment.balancers.names import BALANCERS
from tocsin.experiment.balancers.rows import BalancingRow, BoundRow, BrokerRow
from tocsin.experiment.study import StudyData

WITHIN: Final = 0.1
"""Balanced is within this part of what it comes to in the end."""
_SMOOTHED: Final = 6
"""Rows over which loads are averaged to see when they are balanced: a minute."""


class BalancerOutcome(NamedTuple):
    """One balancer in one half of a run, loads being averages over its last minutes.

    Args:
        traffic: the highest of a broker, over its bandwidth.
        cov: σ ÷ μ of the brokers' traffic.
        matching: the highest part of a processor's time that matching takes; above 1 a broker cannot do it.
        apart: by how much the highest traffic and the lowest differ.
        moves: how many subscribers were moved in this half.
        overhead: the balancer's part of all messages in this half.
        seconds: from when the last subscriber has joined, or more is published, until the highest traffic over the mean
            is within a tenth of what it comes to in the end, and stays there; None: it has not come to rest.
    """

    balancer: str
    half: BoundRow
    traffic: float
    cov: float
    matching: float
    apart: float
    moves: int
    overhead: float
    seconds: float | None

    @property
    def busiest(self) -> float:
        """The higher of the highest traffic and the highest matching."""
        return max(self.traffic, self.matching)

    @property
    def ratio(self) -> float:
        """The highest traffic over the bound."""
        return self.traffic / self.half.bound if self.half.bound else 1.0


class LoadCourse(NamedTuple):
    """A run of one balancer: moments, and for each the brokers' rows."""

    moments: list[float]
    rows: list[list[BrokerRow]]

    @classmethod
    def of(cls, rows: Sequence[BrokerRow], setup: str, balancer: str) -> LoadCourse:
        """Of one of several runs."""
        own = [row for row in rows if (row.setup, row.balancer) == (setup, balancer)]
        grouped = [(at, list(some)) for at, some in groupby(own, lambda row: row.seconds)]
        return cls([at for at, _ in grouped], [some for _, some in grouped])

    def between(self, since: float, until: float) -> list[list[BrokerRow]]:
        """The rows of a span."""
        return [rows for at, rows in zip(self.moments, self.rows, strict=True) if since < at <= until]

    def last_minute(self, at: int) -> list[list[BrokerRow]]:
        """The rows of the minute that ends with the n-th moment."""
        return self.rows[max(0, at + 1 - _SMOOTHED) : at + 1]


def traffics(moments: Sequence[Sequence[BrokerRow]]) -> list[float]:
    """The mean traffic of each broker."""
    return [mean(row.traffic for row in rows) for rows in zip(*moments, strict=True)]


def matchings(moments: Sequence[Sequence[BrokerRow]]) -> list[float]:
    """The mean part of each processor's time that matching takes."""
    return [mean(row.matching for row in rows) for rows in zip(*moments, strict=True)]


def outcomes(data: StudyData) -> Iterator[BalancerOutcome]:
    """All of them, half by half."""
    for half in data.of(BoundRow):
        for balancer in BALANCERS:
            course = LoadCourse.of(data.of(BrokerRow), half.setup, balancer)
            own = [row for row in data.of(BalancingRow) if (row.setup, row.balancer) == (half.setup, balancer)]
            if course.moments:
                yield _outcome(half, balancer, course, own)


def _outcome(half: BoundRow, balancer: str, course: LoadCourse, balancing: Sequence[BalancingRow]) -> BalancerOutcome:
    last = course.between(half.since, half.until)
    loads = traffics(last)
    own = [row for row in balancing if half.begins < row.seconds <= half.until]
    return BalancerOutcome(
        balancer,
        half,
        max(loads),
        pstdev(loads) / mean(loads) if any(loads) else 0.0,
        max(matchings(last)),
        max(loads) - min(loads),
        sum(row.moves for row in own),
        sum(row.own for row in own) / (sum(row.messages for row in own) or 1.0),
        seconds_to_balance(half, course),
    )


def seconds_to_balance(half: BoundRow, course: LoadCourse) -> float | None:
    """Until the highest traffic over the mean stays within a tenth of what it is in the end."""
    final = _imbalance(course.between(half.since, half.until))
    outside = [
        moment
        for at, moment in enumerate(course.moments)
        if half.settles < moment <= half.until and _imbalance(course.last_minute(at)) > (1 + WITHIN) * final
    ]
    if not outside:
        return 0.0
    return None if outside[-1] > half.since else outside[-1] - half.settles


def _imbalance(moments: Sequence[Sequence[BrokerRow]]) -> float:
    loads = traffics(moments)
    return max(loads) / mean(loads) if any(loads) else 1.0

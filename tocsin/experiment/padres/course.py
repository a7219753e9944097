"""What claims and figures ask of a run: its rows by moments and by brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tocsin.experiment.padres.rows import EdgeRow, MessageRow

NORMAL_DELAY: Final = 0.1
"""N_f: by what differences of matching delays are divided."""

HALF_MINUTE: Final = 30.0

Value = Callable[[EdgeRow], float]


def input_of(row: EdgeRow) -> float:
    """The input utilisation ratio."""
    return row.input


def output_of(row: EdgeRow) -> float:
    """The output utilisation ratio."""
    return row.output


def delay_of(row: EdgeRow) -> float:
    """The matching delay, normalised as the detection does."""
    return row.delay / NORMAL_DELAY


METRICS: Final[dict[str, Value]] = {"input": input_of, "output": output_of, "delay": delay_of}


@dataclass(frozen=True)
class OverlayCourse:
    """A run, moment by moment."""

    moments: dict[float, list[EdgeRow]]

    @classmethod
    def of(cls, rows: Iterable[EdgeRow], run: str) -> OverlayCourse:
        """The course of one of several runs."""
        own = [row for row in rows if row.run == run]
        return cls({at: list(some) for at, some in groupby(own, lambda row: row.seconds)})

    def __bool__(self) -> bool:
        return bool(self.moments)

    @property
    def end(self) -> float:
        """The last moment."""
        return max(self.moments)

    @property
    def brokers(self) -> list[str]:
        """The edges."""
        return [row.broker for row in self.moments[self.end]]

    def between(self, since: float, until: float) -> list[list[EdgeRow]]:
        """The moments in a span, its end included."""
        return [rows for at, rows in self.moments.items() if since < at <= until]

    def of_broker(self, broker: str) -> list[EdgeRow]:
        """One edge over time."""
        return [row for rows in self.moments.values() for row in rows if row.broker == broker]

    def difference(self, value: Value, since: float, until: float) -> float:
        """By how much two edges differ at the most, on average over a span."""
        spans = [difference(rows, value) for rows in self.between(since, until)]
        return sum(spans) / len(spans) if spans else 0.0

    def highest_difference(self, value: Value, since: float, until: float) -> float:
        """By how much two edges differ at the most, in the minute of a span in which that is most."""
        times = [at for at in self.moments if since < at <= until]
        minutes = ((max(since, at - HALF_MINUTE), min(until, at + HALF_MINUTE)) for at in times)
        return max((self.difference(value, *minute) for minute in minutes), default=0.0)

    def converged_at(
        self, since: float, until: float, trigger: float, metrics: Iterable[str] = METRICS
    ) -> float | None:
        """From when on until the end of a span all edges are within the trigger of each other; None if not at its end.

        A moment in passing does not count: it is averaged over the minute around it.
        """
        values = [METRICS[name] for name in metrics]
        times = [at for at in self.moments if since < at <= until]
        apart = [at for at in times if any(self._around(value, at) > trigger for value in values)]
        if not times or (apart and apart[-1] == times[-1]):
            return None
        return apart[-1] if apart else since

    def _around(self, value: Value, at: float) -> float:
        return self.difference(value, at - HALF_MINUTE, at + HALF_MINUTE)

    def delivery(self, since: float, until: float, broker: str | None = None) -> float:
        """How long a delivery took on average, in seconds."""
        rows = [row for some in self.between(since, until) for row in some if broker in (None, row.broker)]
        deliveries = sum(row.deliveries for row in rows)
        return sum(row.deliveries * row.delivery for row in rows) / deliveries if deliveries else 0.0


def difference(rows: Sequence[EdgeRow], value: Value) -> float:
    """By how much the edges of a moment differ at the most."""
    values = [value(row) for row in rows]
    return max(values) - min(values)


def overhead(rows: Iterable[MessageRow], run: str, since: float, until: float) -> float:
    """The part of all messages that are the balancer's, in a span."""
    own = [row for row in rows if row.run == run and since < row.seconds <= until]
    messages = sum(row.messages for row in own)
    return sum(row.balancing for row in own) / messages if messages else 0.0

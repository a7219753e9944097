"""How well the input ratio after a session was estimated."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, pstdev
from typing import NamedTuple

from tocsin.experiment.padres.rows import EstimateRow

LEAST_RATIO = 0.02
"""Of brokers with less, a publication more or less is a large part: they are not counted."""


class Accuracy(NamedTuple):
    """Of several estimates: the mean error, signed, how much errors differ, and the mean accuracy.

    An error is the difference of estimate and count, over the larger of the two, so that it is 1 at the most; the
    accuracy is 1 less its size.
    """

    estimates: int
    error: float
    deviation: float
    accuracy: float


def accuracy(rows: Sequence[EstimateRow]) -> Accuracy | None:
    """Of those that are counted; None without any."""
    errors = [
        (row.estimated - row.actual) / max(row.estimated, row.actual)
        for row in rows
        if max(row.estimated, row.actual) >= LEAST_RATIO
    ]
    if not errors:
        return None
    return Accuracy(len(errors), mean(errors), pstdev(errors), 1 - mean(map(abs, errors)))


def select_undisturbed(rows: Sequence[EstimateRow], run: str) -> list[EstimateRow]:
    """The estimates of a run, without those of sessions of the broker that subscribers joined meanwhile."""
    return [row for row in rows if row.run == run and not (row.joining and row.offloader == "B1")]

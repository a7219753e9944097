"""Made-up courses of runs for tests of what is claimed of them."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.experiment.series.course import Course
from tocsin.experiment.series.rows import LoadRow, moment


def course(
    loads: Sequence[Sequence[float]], moved: Sequence[int] | None = None, populations: Sequence[int] | None = None
) -> Course:
    """A run of half an hour: the brokers' loads at as many moments, evenly spaced, and the moves so far."""
    step = 1800.0 / (len(loads) - 1)
    rows = [
        [
            LoadRow("NR", "some", at * step, f"broker-{number}", populations[number] if populations else 10, 0.0, load)
            for number, load in enumerate(row)
        ]
        for at, row in enumerate(loads)
    ]
    moves = moved or [0] * len(loads)
    return Course(
        [moment(row, so_far) for row, so_far in zip(rows, moves, strict=True)], [one for row in rows for one in row]
    )


def steady(highest: float, lowest: float, moved: int = 0) -> Course:
    """Two brokers whose loads never change; all moves at the start."""
    return course([[highest, lowest]] * 4, [moved] * 4)

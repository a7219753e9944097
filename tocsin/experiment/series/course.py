"""A run's course: its moments, and the numbers by which runs are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tocsin.experiment.series.rows import Load, Moment
from tocsin.experiment.study import Data

SETTLED = 900.0
"""Runs are compared by their means from here to the end, in seconds: everybody has subscribed for a good while."""


class Key(NamedTuple):
    """Which run: how subscribers were placed, and what balanced."""

    placement: str
    scheme: str


@dataclass(frozen=True)
class Course:
    """One run, its moments in the order of time."""

    moments: Sequence[Moment]
    loads: Sequence[Load]

    @property
    def highest(self) -> float:
        """The highest load, as a mean over the second half."""
        return _mean([moment.highest for moment in self._settled()])

    @property
    def mean(self) -> float:
        """μ, as a mean over the second half."""
        return _mean([moment.mean for moment in self._settled()])

    @property
    def cov(self) -> float:
        """cov, as a mean over the second half."""
        return _mean([moment.cov for moment in self._settled()])

    @property
    def moved(self) -> int:
        """All moves."""
        return self.moments[-1].moved if self.moments else 0

    def moved_after(self, seconds: float) -> int:
        """The moves made later than that."""
        before = [moment.moved for moment in self.moments if moment.seconds <= seconds]
        return self.moved - (before[-1] if before else 0)

    def calm_from(self, cov: float) -> float | None:
        """From when on cov was never above this again; None if it was at the end."""
        above = [number for number, moment in enumerate(self.moments) if moment.cov > cov]
        first = above[-1] + 1 if above else 0
        return self.moments[first].seconds if first < len(self.moments) else None

    def first_moves(self) -> float | None:
        """When the first moves were seen; None: nobody was moved."""
        return next((moment.seconds for moment in self.moments if moment.moved), None)

    def populations(self, seconds: float) -> dict[str, int]:
        """The subscribers of each broker at the last moment that is not later."""
        at = max((load.seconds for load in self.loads if load.seconds <= seconds), default=None)
        return {load.broker: load.subscribers for load in self.loads if load.seconds == at}

    def _settled(self) -> list[Moment]:
        end = self.moments[-1].seconds if self.moments else 0.0
        return [moment for moment in self.moments if moment.seconds >= min(SETTLED, end / 2)]


def courses(data: Data) -> dict[Key, Course]:
    """All runs of a study."""
    moments: dict[Key, list[Moment]] = {}
    loads: dict[Key, list[Load]] = {}
    for moment in data.of(Moment):
        moments.setdefault(Key(moment.placement, moment.scheme), []).append(moment)
    for load in data.of(Load):
        loads.setdefault(Key(load.placement, load.scheme), []).append(load)
    return {key: Course(rows, loads.get(key, [])) for key, rows in moments.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0

"""A run's course: its moments, and the numbers by which runs are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tocsin.experiment.series.rows import LoadRow, Moment
from tocsin.experiment.study import StudyData

SETTLED = 900.0
"""Runs are compared by their means from here to the end, in seconds: everybody has subscribed for a good while."""


class RunKey(NamedTuple):
    """Which run: how subscribers were placed, what balanced, and with which seed."""

    placement: str
    scheme: str
    seed: int = 1


@dataclass(frozen=True)
class Course:
    """One run, its moments in the order of time."""

    moments: Sequence[Moment]
    loads: Sequence[LoadRow]

    @property
    def highest(self) -> float:
        """The highest load, as a mean over the second half."""
        return _mean([moment.highest for moment in self._settled_moments()])

    @property
    def mean(self) -> float:
        """μ, as a mean over the second half."""
        return _mean([moment.mean for moment in self._settled_moments()])

    @property
    def over(self) -> float:
        """The highest load over the mean."""
        return self.highest / self.mean if self.mean else 0.0

    @property
    def cov(self) -> float:
        """cov, as a mean over the second half."""
        return _mean([moment.cov for moment in self._settled_moments()])

    @property
    def total_moves(self) -> int:
        """All moves."""
        return self.moments[-1].moved if self.moments else 0

    def moved_after(self, seconds: float) -> int:
        """The moves made later than that."""
        before = [moment.moved for moment in self.moments if moment.seconds <= seconds]
        return self.total_moves - (before[-1] if before else 0)

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

    def _settled_moments(self) -> list[Moment]:
        end = self.moments[-1].seconds if self.moments else 0.0
        return [moment for moment in self.moments if moment.seconds >= min(SETTLED, end / 2)]


def courses(data: StudyData) -> dict[RunKey, Course]:
    """All runs of a study."""
    moments: dict[RunKey, list[Moment]] = {}
    loads: dict[RunKey, list[LoadRow]] = {}
    for moment in data.of(Moment):
        moments.setdefault(_key(moment), []).append(moment)
    for load in data.of(LoadRow):
        loads.setdefault(_key(load), []).append(load)
    return {key: Course(rows, loads.get(key, [])) for key, rows in moments.items()}


def by_scheme(runs: Mapping[RunKey, Course]) -> dict[str, list[Course]]:
    """The runs of each scheme, which differ in their seeds, the first seed first."""
    found: dict[str, list[Course]] = {}
    for key in sorted(runs, key=lambda key: key.seed):
        found.setdefault(key.scheme, []).append(runs[key])
    return {key.scheme: found[key.scheme] for key in runs}


def by_seed(runs: Mapping[RunKey, Course]) -> list[dict[str, Course]]:
    """The runs of each seed by the names of their schemes."""
    found: dict[int, dict[str, Course]] = {}
    for key, course in runs.items():
        found.setdefault(key.seed, {})[key.scheme] = course
    return list(found.values())


def _key(row: LoadRow | Moment) -> RunKey:
    return RunKey(row.placement, row.scheme, row.seed)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0

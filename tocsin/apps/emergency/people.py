"""People on the move: on foot and by car between places of the city, and publishers that roam it.

Everyone goes along shortest paths from one random point to the next, at a speed of their own for each trip, and rests
between trips. Each has a generator of their own: the same person goes the same ways however many others there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tocsin.apps.emergency.chance import Purpose, generator
from tocsin.apps.emergency.roads import Floats, Roads

# Of the people, the part that goes on foot; the others drive.
ON_FOOT = 0.7
# Seconds worked out at a time: filling in whole stretches of time keeps the cost per trip, not per second.
WINDOW = 60


class Pace(NamedTuple):
    """How one kind of mover goes about: the letter of its ids, speeds in m/s, and the longest rest in seconds."""

    letter: str
    slowest: float
    fastest: float
    longest_rest: int


WALKER = Pace("p", 0.5, 1.5, 120)
DRIVER = Pace("c", 3.0, 14.0, 120)
ROAMER = Pace("e", 15.0, 40.0, 0)


class Movement(Protocol):
    """Where everybody is, second by second."""

    @property
    def people(self) -> list[str]:
        """The ids of the people, who subscribe."""

    @property
    def publishers(self) -> list[str]:
        """The ids of those who report emergencies."""

    def positions(self, which: Sequence[int] | None = None) -> Iterator[Floats]:
        """For each second one array with a row (x, y) for each of the people, then each of the publishers.

        Of these rows only ``which`` are given, in that order, if it is said.
        """


class Population:
    """The seeded movement: people on foot (p…), by car (c…), and publishers (e…), numbered through. It never ends."""

    def __init__(self, roads: Roads, seed: int, *, people: int = 400, publishers: int = 8) -> None:
        self._roads, self._seed = roads, seed
        walkers = round(people * ON_FOOT)
        self._paces = [WALKER] * walkers + [DRIVER] * (people - walkers) + [ROAMER] * publishers
        ids = [f"{pace.letter}{number}" for number, pace in enumerate(self._paces)]
        self.people, self.publishers = ids[:people], ids[people:]

    def positions(self, which: Sequence[int] | None = None) -> Iterator[Floats]:
        """Each call starts again from the first second. Those who are not asked for cost nothing."""
        journeys = [
            _journey(self._roads, self._paces[number], generator(self._seed, Purpose.MOVEMENT, number))
            for number in (range(len(self._paces)) if which is None else which)
        ]
        ahead = [np.empty((0, 2)) for _ in journeys]
        while True:
            window = np.empty((WINDOW, len(journeys), 2))
            for number, journey in enumerate(journeys):
                ahead[number] = _fill(window[:, number], ahead[number], journey)
            yield from window


def _fill(column: Floats, ahead: Floats, journey: Iterator[Floats]) -> Floats:
    """Fill ``column`` with the positions ahead and as much of the journey as it takes; return what is over."""
    done = 0
    while done < len(column):
        part = ahead[: len(column) - done]
        column[done : done + len(part)] = part
        ahead = ahead[len(part) :] if len(part) < len(ahead) else next(journey)
        done += len(part)
    return ahead


def _journey(roads: Roads, pace: Pace, rng: np.random.Generator) -> Iterator[Floats]:
    """Trips and rests without end, each as an array of positions a second apart."""
    here = int(rng.integers(len(roads.points)))
    while True:
        there = (here + int(rng.integers(1, len(roads.points)))) % len(roads.points)
        yield _trip(roads.path(here, there), rng.uniform(pace.slowest, pace.fastest))
        here = there
        yield np.tile(roads.points[here], (int(rng.integers(pace.longest_rest + 1)), 1))


def _trip(path: Floats, speed: float) -> Floats:
    """The positions after 1, 2, 3 … seconds along ``path``, the last one at its end."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    travelled = np.arange(1, math.ceil(along[-1] / speed) + 1) * speed
    return np.stack([np.interp(travelled, along, path[:, 0]), np.interp(travelled, along, path[:, 1])], axis=-1)

"""The ground that people of a city walk on: the seeded city, a road map, or where a recorded trace says they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from tocsin.apps.emergency.city import City, district
from tocsin.apps.emergency.people import Crowd, Movement
from tocsin.apps.emergency.shelters import shelters
from tocsin.apps.emergency.traces import Traces
from tocsin.balance.workload import Floats
from tocsin.errors import InvalidError

_PUBLISHERS: Final = 8
_SHELTERS: Final = 200


@dataclass(frozen=True)
class Ground:
    """Who goes where, the districts of the city with the busiest first, and its shelters.

    ``people`` and ``publishers`` are columns of what ``positions`` gives. Where a trace has no publishers, the people
    report what they see.
    """

    movement: Movement
    people: range
    publishers: range
    districts: list[str]
    shelters: list[dict[str, Any]]

    def positions(self) -> Iterator[Floats]:
        """Where everybody is, second by second; InvalidError where there are no districts."""
        return _on_the_map(self.movement.positions())


def ground(seed: int, subscribers: int | None, roads: Path | None, trace: Path | None) -> Ground:
    """The ground for so many subscribers; without a number, 400, or all people of a trace.

    Raises InvalidError when a file cannot be used, or the trace has fewer people.
    """
    city = City.from_wkt(roads) if roads else City.from_seed(seed)
    if trace is None:
        crowd = Crowd(city.roads, seed, people=subscribers or 400, publishers=_PUBLISHERS)
        return _ground(crowd, len(crowd.people), city.districts(), shelters(city, seed, _SHELTERS))
    recorded = Traces(trace)
    there = len(recorded.people)
    if not there or (subscribers or 0) > there:
        raise InvalidError(f"{trace} has {there} people (ids that do not begin with e); more cannot subscribe")
    if roads:
        return _ground(recorded, subscribers or there, city.districts(), shelters(city, seed, _SHELTERS))
    return _ground(recorded, subscribers or there, _districts(recorded), [])


def sites(places: Floats, brokers: int) -> Floats:
    """Where brokers are: the first in the middle of all places, the others around them, of four one in each corner.

    Most people are about the middle and few at the edge, so the nearest broker is the first for most.
    """
    low, high = places.min(axis=(0, 1)), places.max(axis=(0, 1))
    angles = (np.arange(brokers - 1) + 0.5) * 2 * np.pi / max(brokers - 1, 1)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    middle = (low + high) / 2
    return np.concatenate([[middle], middle + around * (high - low) / np.sqrt(2)]).round(1)


def _ground(movement: Movement, count: int, districts: list[str], built: list[dict[str, Any]]) -> Ground:
    people = len(movement.people)
    publishers = range(people, people + len(movement.publishers)) if movement.publishers else range(people)
    return Ground(movement, range(count), publishers, districts, built)


def _districts(recorded: Traces) -> list[str]:
    """The districts that the people of a trace are in at first, those with the most people first."""
    first = next(_on_the_map(recorded.positions()))[: len(recorded.people)]
    counts = Counter(district(x, y) for x, y in first.tolist())
    return sorted(counts, key=lambda name: (-counts[name], name))


def _on_the_map(movement: Iterator[Floats]) -> Iterator[Floats]:
    for second, positions in enumerate(movement):
        if not positions.min() >= 0:
            raise InvalidError(
                f"in second {second} somebody is at {positions.min():g} m, where the city has no districts; move the "
                "origin, so that x and y are never below 0"
            )
        yield positions

"""The ground that people of a city walk on: the seeded city, a road map, or where a recorded trace says they were; and
its shelters, records of the Shelters dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from tocsin.apps.emergency.chance import Purpose, generator
from tocsin.apps.emergency.city import EAST, HEIGHT, WIDTH, City, district
from tocsin.apps.emergency.people import Movement, Population
from tocsin.apps.emergency.roads import Floats
from tocsin.apps.emergency.traces import Traces
from tocsin.errors import InvalidError

PEOPLE: Final = 400
PUBLISHERS: Final = 8
SHELTERS: Final = 200

_STREETS = (
    "Abbey", "Alder", "Bishop", "Canal", "Cedar", "Chapel", "Elm", "Foundry", "Garden", "Harbour",
    "Hill", "Juniper", "Linden", "Market", "Mill", "Orchard", "Quay", "Rowan", "Station", "Tanner",
)  # fmt: skip
_BUILDINGS = (
    "School", "Library", "Sports Hall", "Community Centre", "Church",
    "College", "Town Hall", "Metro Station", "Theatre", "Ice Rink",
)  # fmt: skip


@dataclass(frozen=True)
class Ground:
    """Who goes where, the districts of the city with the busiest first, and its shelters.

    ``people`` and ``publishers`` are rows of what ``movement`` gives. Where a trace has no publishers, the people
    report what they see. ``low`` and ``high`` are the corners of the city, south-west and north-east.
    """

    movement: Movement
    people: range
    publishers: range
    districts: list[str]
    shelters: list[dict[str, Any]]
    low: tuple[float, float]
    high: tuple[float, float]

    @property
    def names(self) -> list[str]:
        """The ids of the people."""
        return [self.movement.people[number] for number in self.people]

    @property
    def reporting(self) -> list[str]:
        """The ids of those who report."""
        everybody = [*self.movement.people, *self.movement.publishers]
        return [everybody[number] for number in self.publishers]

    def positions(self, which: Sequence[int] | None = None) -> Iterator[Floats]:
        """Where everybody is, or those of these rows, second by second."""
        return self.movement.positions(which)


def ground(
    seed: int,
    subscribers: int | None = None,
    roads: Path | None = None,
    trace: Path | None = None,
    *,
    publishers: int = PUBLISHERS,
    built: int = SHELTERS,
) -> Ground:
    """The ground for so many subscribers; without a number, 400, or all people of a trace.

    ``publishers`` of a trace are those that it has. ``built`` is how many shelters there are; where there is a trace
    and no road map to build them at, there are none. Raises InvalidError when a file cannot be used, or the trace has
    fewer people.
    """
    city = City.from_wkt(roads) if roads else City.from_seed(seed)
    raised = shelters(city, seed, built)
    if trace is None:
        crowd = Population(city.roads, seed, people=subscribers or PEOPLE, publishers=publishers)
        locations = city.roads.points if roads else np.array([[0.0, 0.0], [WIDTH, HEIGHT]])
        return _ground(crowd, len(crowd.people), city.districts(), raised, locations)
    recorded = Traces(trace)
    there = len(recorded.people)
    if not there or (subscribers or 0) > there:
        raise InvalidError(f"{trace} has {there} people (ids that do not begin with e); more cannot subscribe")
    locations = _on_the_map(recorded)
    if roads:
        return _ground(recorded, subscribers or there, city.districts(), raised, locations)
    return _ground(recorded, subscribers or there, _districts(recorded), [], locations)


def shelters(city: City, seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` shelters along the roads, each with a name of its own and room for 50 to 1,000 people."""
    rng = generator(seed, Purpose.SHELTERS)
    order = rng.permutation(len(_STREETS) * len(_BUILDINGS))
    records = []
    for number in range(count):
        x, y = city.roads.pick_location(rng)
        name = _name(int(order[number % len(order)]), number // len(order))
        capacity = int(rng.integers(5, 101)) * 10
        records.append({"id": f"s{number}", "name": name, "x": round(x, 1), "y": round(y, 1), "capacity": capacity})
    return records


def sites(locations: Floats, brokers: int) -> Floats:
    """Where brokers are: the first in the middle of all locations, the others around them, of four one in each corner.

    Most people are about the middle and few at the edge, so the nearest broker is the first for most.
    """
    low, high = locations.min(axis=(0, 1)), locations.max(axis=(0, 1))
    angles = (np.arange(brokers - 1) + 0.5) * 2 * np.pi / max(brokers - 1, 1)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    middle = (low + high) / 2
    return np.concatenate([[middle], middle + around * (high - low) / np.sqrt(2)]).round(1)


def _ground(
    movement: Movement, count: int, districts: list[str], raised: list[dict[str, Any]], locations: Floats
) -> Ground:
    people = len(movement.people)
    publishers = range(people, people + len(movement.publishers)) if movement.publishers else range(people)
    (west, south), (east, north) = locations.min(axis=0).tolist(), locations.max(axis=0).tolist()
    return Ground(movement, range(count), publishers, districts, raised, (west, south), (east, north))


def _districts(recorded: Traces) -> list[str]:
    """The districts that the people of a trace are in at first, those with the most people first."""
    first = next(recorded.positions())[: len(recorded.people)]
    counts = Counter(district(x, y) for x, y in first.tolist())
    return sorted(counts, key=lambda name: (-counts[name], name))


def _on_the_map(recorded: Traces) -> Floats:
    """The corners of where everybody is in the trace; InvalidError where there are no districts."""
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for second, positions in enumerate(recorded.positions()):
        low, high = np.minimum(low, positions.min(axis=0)), np.maximum(high, positions.max(axis=0))
        outside = low.min() if not low.min() >= 0 else high[0]
        if not 0 <= outside < EAST or not high[1] < np.inf:
            raise InvalidError(
                f"in second {second} somebody is at {outside:g} m, where the city has no districts; move the origin, "
                f"so that x and y are never below 0, and x is below {EAST:,.0f}"
            )
    return np.stack([low, high])


def _name(which: int, turn: int) -> str:
    """The name of that number; when all names are taken, the next turn adds a figure to each."""
    street, building = divmod(which, len(_BUILDINGS))
    return f"{_STREETS[street]} Street {_BUILDINGS[building]}" + (f" {turn + 1}" if turn else "")

"""The world the emergency application runs in: one seed, and everything that happens follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin.apps.emergency.chance import Purpose, generator
from tocsin.apps.emergency.city import City
from tocsin.apps.emergency.interests import Interest, interests
from tocsin.apps.emergency.people import Crowd, Movement
from tocsin.apps.emergency.reports import TYPES, Reporter
from tocsin.apps.emergency.roads import Floats
from tocsin.apps.emergency.shelters import shelters
from tocsin.errors import InvalidError

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Second:
    """What happens in one second: records for the ``locations`` and ``reports`` feeds. ``at`` counts from 0."""

    at: int
    locations: list[dict[str, Any]]
    reports: list[dict[str, Any]]


class World:
    """A city with its shelters, its moving people, the emergencies reported in it, and who wants to know of them.

    ``seed``: a whole number from 0; the same one gives the same world.
    ``people``, ``publishers``: how many move about, and how many of those that report (unless ``movement`` says).
    ``shelters``: how many there are.
    ``reports_per_second``: on average; 5.6 makes the paper's 10,000 reports in 30 minutes.
    ``start``: when second 0 is. A world run again over stored data needs a later start, or its reports bear the ids of
    those stored already and are taken for the same.
    ``city``: the city of a road map, instead of the seeded one.
    ``movement``: recorded traces, instead of seeded trips along the city's roads.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        people: int = 400,
        publishers: int = 8,
        shelters: int = 200,
        reports_per_second: float = 5.6,
        start: datetime = START,
        city: City | None = None,
        movement: Movement | None = None,
    ) -> None:
        _refuse_below(0, seed=seed, shelters=shelters, reports_per_second=reports_per_second)
        _refuse_below(1, people=people, publishers=publishers)
        if start.tzinfo is None:
            raise InvalidError(f"start {start.isoformat()} has no time zone; give it one, such as UTC.")
        self._seed, self._shelters, self._reports_per_second = seed, shelters, reports_per_second
        self._start = start.astimezone(UTC)
        self.city = city or City.from_seed(seed)
        self._movement = movement or Crowd(self.city.roads, seed, people=people, publishers=publishers)

    @property
    def subscribers(self) -> list[str]:
        """The ids of the people, which are their ``userId`` in the records."""
        return self._movement.people

    @property
    def event_types(self) -> list[str]:
        """The types of emergencies that are reported."""
        return list(TYPES)

    def shelters(self) -> list[dict[str, Any]]:
        """The records to load into Shelters."""
        return shelters(self.city, self._seed, self._shelters)

    def interests(self) -> list[Interest]:
        """The subscriptions the subscribers make, grouped by subscriber."""
        return interests(self.subscribers, self.event_types, self.city.districts(), self._seed)

    def seconds(self) -> Iterator[Second]:
        """What happens, second by second, as long as the movement goes on. Each call begins at the start again."""
        publishers = self._movement.publishers
        reporter = Reporter(generator(self._seed, Purpose.REPORTS), publishers, self._reports_per_second)
        for at, positions in enumerate(self._movement.positions()):
            now = self._start + timedelta(seconds=at)
            people = len(self.subscribers)
            yield Second(at, self._locations(now, positions[:people]), reporter.reports(now, positions[people:]))

    def _locations(self, now: datetime, positions: Floats) -> list[dict[str, Any]]:
        at = f"{now:%Y-%m-%dT%H:%M:%SZ}"
        places = positions.round(1).tolist()
        return [
            {"userId": user, "x": x, "y": y, "at": at} for user, (x, y) in zip(self.subscribers, places, strict=True)
        ]


def _refuse_below(least: float, **values: float) -> None:
    for name, value in values.items():
        if value < least:
            raise InvalidError(f"{name} must be at least {least}, not {value}.")

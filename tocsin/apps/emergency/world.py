"""The world the emergency application runs in: one seed, and everything that happens follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin.apps.emergency.chance import Purpose, generator
from tocsin.apps.emergency.ground import PEOPLE, PUBLISHERS, SHELTERS, Ground
from tocsin.apps.emergency.ground import ground as seeded
from tocsin.apps.emergency.interests import Interest, interests
from tocsin.apps.emergency.reports import TYPES, Reporter
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
    ``people``, ``publishers``: how many move about, and how many of those that report.
    ``shelters``: how many there are.
    ``reports_per_second``: on average; 5.6 makes the paper's 10,000 reports in 30 minutes.
    ``start``: when second 0 is. A world run again over stored data needs a later start, or its reports bear the ids of
    those stored already and are taken for the same.
    ``ground``: where people go and who they are, of a road map or a recorded trace, instead of the seeded city.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        people: int = PEOPLE,
        publishers: int = PUBLISHERS,
        shelters: int = SHELTERS,
        reports_per_second: float = 5.6,
        start: datetime = START,
        ground: Ground | None = None,
    ) -> None:
        _refuse_below(0, seed=seed, shelters=shelters, reports_per_second=reports_per_second)
        _refuse_below(1, people=people, publishers=publishers)
        if start.tzinfo is None:
            raise InvalidError(f"start {start.isoformat()} has no time zone; give it one, such as UTC.")
        self._seed, self._reports_per_second = seed, reports_per_second
        self._start = start.astimezone(UTC)
        self.ground = ground or seeded(seed, people, publishers=publishers, built=shelters)
        self.subscribers = self.ground.names
        """The ids of the people, which are their ``userId`` in the records."""

    @property
    def event_types(self) -> list[str]:
        """The types of emergencies that are reported."""
        return list(TYPES)

    def shelters(self) -> list[dict[str, Any]]:
        """The records to load into Shelters."""
        return self.ground.shelters

    def interests(self) -> list[Interest]:
        """The subscriptions the subscribers make, grouped by subscriber."""
        return interests(self.subscribers, self.event_types, self.ground.districts, self._seed)

    def seconds(self) -> Iterator[Second]:
        """What happens, second by second, as long as the movement goes on. Each call begins at the start again."""
        everything = zip(self.locations(self.ground.people), self.reports(), strict=True)
        return (Second(at, locations, reports) for at, (locations, reports) in enumerate(everything))

    def locations(self, people: Sequence[int]) -> Iterator[list[dict[str, Any]]]:
        """Where these of the subscribers are, by their numbers, second by second."""
        names = [self.subscribers[number] for number in people]
        for at, positions in enumerate(self.ground.positions(people)):
            now = f"{self._start + timedelta(seconds=at):%Y-%m-%dT%H:%M:%SZ}"
            places = positions.round(1).tolist()
            yield [{"userId": name, "x": x, "y": y, "at": now} for name, (x, y) in zip(names, places, strict=True)]

    def reports(self) -> Iterator[list[dict[str, Any]]]:
        """The emergencies that are reported, second by second."""
        reporter = Reporter(generator(self._seed, Purpose.REPORTS), self.ground.reporting, self._reports_per_second)
        for at, positions in enumerate(self.ground.positions(self.ground.publishers)):
            yield reporter.reports(self._start + timedelta(seconds=at), positions)


def _refuse_below(least: float, **values: float) -> None:
    for name, value in values.items():
        if value < least:
            raise InvalidError(f"{name} must be at least {least}, not {value}.")

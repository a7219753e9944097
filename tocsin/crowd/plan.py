"""What a crowd is to play: which people, on which network, and in how many processes."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from tocsin.apps.emergency import World
from tocsin.apps.emergency.ground import ground
from tocsin.local.network import TOKEN

# Publications a second that a process has time for, with what it has to read besides; docs/performance.md has what
# one costs.
PER_PROCESS: Final = 1500


class CrowdPlan(msgspec.Struct, frozen=True):
    """Which people, and where their network is.

    Args:
        coordinator, data: URLs.
        people: how many; of a trace at most those that it has.
        seed: of the city and everybody in it.
        trace: recorded movement (Parquet); else people go about the roads.
        roads: a road map (WKT); else the seeded city.
        seconds: in a run of this length people come and go by the timetable; without it, all come before it begins
            and stay.
        speed: how many seconds of the world pass in a second.
        token: an operator's, by which people are registered; without it, they register themselves.
        data_token: by which reports are published.
    """

    coordinator: str
    data: str
    people: int
    seed: int
    trace: str | None = None
    roads: str | None = None
    seconds: float | None = None
    speed: float = 1.0
    token: str | None = TOKEN
    data_token: str = TOKEN

    def world(self, start: datetime) -> World:
        """The city, whose second 0 is at ``start``. InvalidError when a file cannot be used."""
        trace, roads = (Path(name) if name else None for name in (self.trace, self.roads))
        land = ground(self.seed, None if trace else self.people, roads, trace)
        return World(self.seed, start=start, ground=replace(land, people=land.people[: self.people]))


def processes(people: int, cores: int) -> int:
    """How many processes play so many people: no more than have something to do, or a core to do it on."""
    return max(min(math.ceil(people / PER_PROCESS), cores), 1)


class CrowdShare(msgspec.Struct, frozen=True):
    """Which of the people a process plays: every ``of``-th, from ``number`` on; so each has some of every kind."""

    number: int
    of: int

    def people(self, everybody: int) -> range:
        """Their numbers."""
        return range(self.number, everybody, self.of)

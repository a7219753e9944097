"""What should come of a stream, in plain Python: a seeded city of reports and people, and who is to be told what.

The people that a channel asks for stay where they are, and those who move are far from every report. So what is near
whom does not depend on when a channel ran, and the expected matches are exact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot
from random import Random
from typing import Any, Final

Record = dict[str, Any]

APPLICATION: Final = """
CREATE DATASET Reports (id STRING, etype STRING, severity INT, x DOUBLE, y DOUBLE) PRIMARY KEY id;
CREATE KEYED DATASET People (userId STRING, x DOUBLE, y DOUBLE, step BIGINT) PRIMARY KEY userId;
CREATE REFERENCE DATASET Shelters (id STRING, x DOUBLE, y DOUBLE) PRIMARY KEY id;
CREATE FEED reports INTO Reports SLICED BY id INTO 4 SLICES;
CREATE FEED people INTO People SLICED BY userId INTO 3 SLICES;
CREATE REPETITIVE CHANNEL OfType(event STRING) PERIOD 500 MILLISECONDS AS
  SELECT r.* FROM Reports r WHERE r.etype = event AND is_new(r);
CREATE CONTINUOUS CHANNEL Severe(least INT) AS
  SELECT r.id, r.severity FROM Reports r WHERE r.severity >= least AND is_new(r);
CREATE CONTINUOUS CHANNEL NearPerson(person STRING) AS
  SELECT r.id, p.userId FROM Reports r JOIN People p ON near(r.x, r.y, p.x, p.y, 500)
  WHERE p.userId = person AND is_new(r);
CREATE REPETITIVE CHANNEL Sheltered(event STRING) PERIOD 700 MILLISECONDS AS
  SELECT r.id, s.id AS shelter FROM Reports r JOIN Shelters s ON near(r.x, r.y, s.x, s.y, 300)
  WHERE r.etype = event AND is_new(r);
"""
EVENTS: Final = ("fire", "flood", "storm", "quake")
MOST_SEVERE: Final = 9
WORLD: Final = 3000.0
_FAR: Final = -50_000.0


@dataclass
class City:
    """A seeded city; what it publishes is remembered."""

    chance: Random
    reports: list[Record] = field(default_factory=list)
    moves: list[Record] = field(default_factory=list)
    _made: int = 0

    def __post_init__(self) -> None:
        self.residents = [{"userId": f"resident-{n}", **self._place(), "step": 0} for n in range(6)]
        self.shelters = [{"id": f"shelter-{n}", **self._place()} for n in range(12)]

    def batch(self, size: int) -> list[Record]:
        """The next reports."""
        made = [self._report(self.chance.choice(EVENTS), self.chance.randint(0, MOST_SEVERE)) for _ in range(size)]
        self.reports += made
        return made

    def last_batch(self) -> list[Record]:
        """Reports of which every subscription matches one, so that having found them means having seen all before."""
        made = [self._report(event, MOST_SEVERE) for event in EVENTS]
        made += [self._report(EVENTS[0], 0) | {"x": p["x"], "y": p["y"]} for p in self.residents]
        made += [self._report(event, 0) | {"x": self.shelters[0]["x"], "y": self.shelters[0]["y"]} for event in EVENTS]
        self.reports += made
        return made

    def moved(self, size: int) -> list[Record]:
        """Where some of those who move are now."""
        first = len(self.moves) + 1
        made = [self._move(step) for step in range(first, first + size)]
        self.moves += made
        return made

    def people(self) -> dict[str, Record]:
        """Everyone, as last heard of."""
        return {person["userId"]: person for person in (*self.residents, *self.moves)}

    def _report(self, event: str, severity: int) -> Record:
        self._made += 1
        return {"id": f"report-{self._made}", "etype": event, "severity": severity, **self._place()}

    def _move(self, step: int) -> Record:
        place = self._place()
        return {"userId": f"mover-{self.chance.randrange(40)}", "x": _FAR + place["x"], "y": place["y"], "step": step}

    def _place(self) -> Record:
        return {axis: round(self.chance.uniform(0, WORLD), 3) for axis in ("x", "y")}


def subscriptions(city: City) -> dict[str, list[Record]]:
    """The parameters that somebody subscribes with, by channel."""
    return {
        "OfType": [{"event": event} for event in EVENTS],
        "Severe": [{"least": least} for least in (0, 5, MOST_SEVERE)],
        "NearPerson": [{"person": person["userId"]} for person in city.residents],
        "Sheltered": [{"event": event} for event in EVENTS],
    }


def matches(city: City, channel: str, parameters: Mapping[str, Any]) -> list[Record]:
    """What a channel should have found for one subscription, from first to last."""
    return list(_CHANNELS[channel](city, **parameters))


def ndjson(records: Sequence[Record]) -> bytes:
    """Records as publishers send them."""
    return "\n".join(json.dumps(record) for record in records).encode()


def csv(records: Sequence[Record]) -> str:
    """Records as a file to load."""
    return "\n".join(",".join(map(str, line)) for line in (records[0], *(record.values() for record in records)))


def _of_type(city: City, event: str) -> Iterator[Record]:
    return (report for report in city.reports if report["etype"] == event)


def _severe(city: City, least: int) -> Iterator[Record]:
    return ({"id": r["id"], "severity": r["severity"]} for r in city.reports if r["severity"] >= least)


def _near_person(city: City, person: str) -> Iterator[Record]:
    [place] = [resident for resident in city.residents if resident["userId"] == person]
    return ({"id": r["id"], "userId": person} for r in city.reports if _near(r, place, 500))


def _sheltered(city: City, event: str) -> Iterator[Record]:
    found = ((r, s) for r in _of_type(city, event) for s in city.shelters if _near(r, s, 300))
    return ({"id": r["id"], "shelter": s["id"]} for r, s in found)


def _near(one: Record, other: Record, radius: float) -> bool:
    return hypot(one["x"] - other["x"], one["y"] - other["y"]) <= radius


_CHANNELS: Final[dict[str, Callable[..., Iterator[Record]]]] = {
    "OfType": _of_type,
    "Severe": _severe,
    "NearPerson": _near_person,
    "Sheltered": _sheltered,
}

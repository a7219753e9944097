"""What happened in a city: where people were, and the emergencies that were reported."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np

from tocsin.apps.emergency.chance import Purpose, generator
from tocsin.apps.emergency.city import district
from tocsin.apps.emergency.ground import Ground
from tocsin.apps.emergency.reports import Reporter
from tocsin.apps.emergency.world import START
from tocsin.balance.model.workload import Floats
from tocsin.errors import InvalidError

STEP: Final = 10
"""Locations are kept for every tenth second, the shortest period of the application's channels."""


@dataclass(frozen=True)
class Report:
    """An emergency, as channels look at it. ``size`` is that of its record, in bytes of JSON."""

    at: int
    event: str
    location: str
    severity: int
    x: float
    y: float
    size: int


@dataclass(frozen=True)
class CityTracks:
    """``locations`` has for every ``STEP`` seconds and person a row (x, y). ``seconds`` is how long all of it took."""

    seconds: int
    locations: Floats
    reports: list[Report]

    def location(self, person: int, at: float) -> tuple[float, float]:
        """Where a person was."""
        x, y = self.locations[min(int(at / STEP), len(self.locations) - 1), person].tolist()
        return x, y


def follow(ground: Ground, seed: int, seconds: int, reports_per_second: float) -> CityTracks:
    """Follows everybody for so long, or as long as the trace goes on."""
    names = [str(number) for number in ground.publishers]
    reporter = Reporter(generator(seed, Purpose.REPORTS), names, reports_per_second)
    locations, reports, passed = [], [], 0
    people, publishers = list(ground.people), list(ground.publishers)
    for positions in islice(ground.positions(), seconds):
        if passed % STEP == 0:
            locations.append(positions[people].round(1))
        said = reporter.reports(START + timedelta(seconds=passed), positions[publishers])
        reports += [_report(passed, record) for record in said]
        passed += 1
    if passed < STEP:
        raise InvalidError(f"people are followed for {passed} s; a scenario of a city takes at least {STEP} s")
    return CityTracks(passed, np.stack(locations), reports)


def _report(at: int, record: dict[str, Any]) -> Report:
    x, y = record["x"], record["y"]
    size = len(msgspec.json.encode(record))
    return Report(at, record["etype"], district(x, y), record["severity"], x, y, size)

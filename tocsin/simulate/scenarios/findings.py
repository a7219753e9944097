"""What the emergency application's channels find for a subscription, worked out without running a query.

The channels are those of ``tocsin/apps/emergency/app.sql``; an execution finds the reports since the one before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from tocsin.balance.model.workload import Floats
from tocsin.simulate.scenario import ScenarioChannel, ScenarioRates
from tocsin.simulate.scenarios.tracks import STEP, CityTracks, Report

NEAR: Final = 500.0
GRAVE: Final = 4
_ANY_GRAVE: Final = "EmergenciesNearMe"
_WITH_SHELTERS: Final = "WithShelter"


@dataclass(frozen=True)
class CitySubscription:
    """A BE subscription. ``person`` is the number of the subscriber whose location it goes by, if it goes by one."""

    channel: str
    event: str | None = None
    location: str | None = None
    person: int | None = None
    radius: float = NEAR


class Findings:
    """What executions find, from what happened in the city."""

    def __init__(self, tracks: CityTracks, shelters: Sequence[dict[str, Any]]) -> None:
        self._tracks = tracks
        self._at = [report.at for report in tracks.reports]
        self._with_shelters = _sizes_with_shelters(tracks.reports, shelters)

    def rates(self, channels: Sequence[ScenarioChannel], backends: Sequence[CitySubscription]) -> ScenarioRates:
        """For each BE subscription, a row whenever an execution finds more or less than the last. All begin with 0."""
        rows: list[tuple[float, int, float]] = []
        for channel in channels:
            numbers = [number for number, backend in enumerate(backends) if backend.channel == channel.name]
            own, before = [backends[number] for number in numbers], np.zeros(len(numbers))
            for at in np.arange(channel.period, self._tracks.seconds + 0.5, channel.period).tolist():
                now = self._find_bytes(channel, own, at)
                rows += [(at, numbers[place], float(now[place])) for place in np.flatnonzero(now != before).tolist()]
                before = now
        rows.sort()
        return ScenarioRates([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])

    def _find_bytes(self, channel: ScenarioChannel, backends: list[CitySubscription], at: float) -> Floats:
        """The bytes that the channel's execution at this time finds for each of its BE subscriptions."""
        window = slice(bisect_left(self._at, at - channel.period), bisect_left(self._at, at))
        reports = self._tracks.reports[window]
        sizes = np.array([report.size for report in reports], np.float64)
        if _WITH_SHELTERS in channel.name:
            sizes = self._with_shelters[window]
        if backends and backends[0].person is not None:
            return self._near(channel, backends, at, reports, sizes)
        found = Counter[tuple[str | None, str | None]]()
        for report, size in zip(reports, sizes.tolist(), strict=True):
            for key in ((report.event, None), (None, report.location), (report.event, report.location)):
                found[key] += size
        return np.array([found[backend.event, backend.location] for backend in backends], np.float64)

    def _near(
        self,
        channel: ScenarioChannel,
        backends: list[CitySubscription],
        at: float,
        reports: list[Report],
        sizes: Floats,
    ) -> Floats:
        people = np.array([backend.person for backend in backends], np.int64)
        here = self._tracks.locations[min(int(at) // STEP, len(self._tracks.locations) - 1)][people]
        far = _distances(here, np.array([(report.x, report.y) for report in reports]).reshape(-1, 2))
        events = np.array([report.event for report in reports], str)
        wanted = np.array([backend.event for backend in backends], str)[:, None] == events[None, :]
        if channel.name == _ANY_GRAVE:
            wanted |= np.array([report.severity >= GRAVE for report in reports], bool)[None, :]
        within = far <= np.array([backend.radius for backend in backends])[:, None]
        return np.asarray((wanted & within) @ sizes)


def _sizes_with_shelters(reports: Sequence[Report], shelters: Sequence[dict[str, Any]]) -> Floats:
    """The sizes of reports with the shelters near them."""
    sizes = np.array([report.size for report in reports], np.float64)
    if not shelters or not reports:
        return sizes
    extra = np.array([len(msgspec.json.encode(shelter)) for shelter in shelters], np.float64)
    where = np.array([(shelter["x"], shelter["y"]) for shelter in shelters])
    return np.concatenate(list(_add_extras(reports, where, extra, sizes)))


def _add_extras(reports: Sequence[Report], where: Floats, extra: Floats, sizes: Floats) -> Iterator[Floats]:
    for begin in range(0, len(reports), 1000):
        part = slice(begin, begin + 1000)
        locations = np.array([(report.x, report.y) for report in reports[part]])
        yield sizes[part] + (_distances(locations, where) <= NEAR) @ extra


def _distances(from_: Floats, to: Floats) -> Floats:
    return np.asarray(np.linalg.norm(from_[:, None, :] - to[None, :, :], axis=-1))

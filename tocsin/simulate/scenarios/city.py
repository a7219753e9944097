"""People of a city on the move: those of the emergency application, on seeded roads, a road map or a recorded trace.

They log in where they are, want what the application's people want, go away, and come back somewhere else, where they
follow the district they are in. What executions find is what the emergencies reported in the city bring.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np

from tocsin.apps.emergency import APPLICATION
from tocsin.apps.emergency.ground import ground, sites
from tocsin.apps.emergency.interests import interests
from tocsin.apps.emergency.reports import TYPES
from tocsin.data.language.forms import CreateChannel
from tocsin.data.language.parser import parse
from tocsin.errors import InvalidError
from tocsin.simulate.scenario import BackendSubscriptions, InitialLocations, Scenario, ScenarioBroker, ScenarioChannel
from tocsin.simulate.scenarios.days import Days, Habits
from tocsin.simulate.scenarios.findings import Findings
from tocsin.simulate.scenarios.tracks import STEP, follow


@dataclass(frozen=True)
class CityScenario:
    """What the scenario is made from. Times are seconds.

    Args:
        subscribers: how many; None for 400, or for all people of the trace.
        seconds: how long it takes, unless the trace ends before.
        roads: a road map, a file of LINESTRINGs in metres; else the seeded city.
        trace: recorded locations (Parquet with t, node, x, y); else people go about the roads.
        arriving: all log in for the first time within this.
        deciding: each subscribes within so long of that.
        online: how long visits take, at least and at most; a first one also takes ``deciding``.
        offline: how long they are away between visits.
        telling: locations are in the file for every so many seconds, a multiple of 10.
        reports_per_second: emergencies; 5.6 is the paper's 10,000 in 30 minutes.
        capacity: what each broker can send, bytes per second.
    """

    subscribers: int | None = None
    brokers: int = 5
    seconds: int = 1800
    roads: Path | None = None
    trace: Path | None = None
    arriving: float = 240.0
    deciding: float = 240.0
    online: tuple[float, float] = (300.0, 900.0)
    offline: tuple[float, float] = (30.0, 180.0)
    telling: int = 30
    reports_per_second: float = 5.6
    capacity: float | None = None

    def __post_init__(self) -> None:
        if self.telling < STEP or self.telling % STEP:
            raise InvalidError(f"telling is {self.telling}; it must be a multiple of {STEP} seconds")


def city(options: CityScenario | None = None, seed: int = 0) -> Scenario:
    """The scenario. InvalidError when the road map or the trace cannot be used."""
    o = options or CityScenario()
    land = ground(seed, o.subscribers, o.roads, o.trace)
    tracks = follow(land, seed, o.seconds, o.reports_per_second)
    names = [str(number) for number in land.people]
    wanted = interests(names, list(TYPES), land.districts, seed)
    habits = Habits(o.arriving, o.deciding, o.online, o.offline, o.telling)
    days = Days(habits, tracks, np.random.default_rng([seed, 7]))
    for name, group in groupby(wanted, key=lambda interest: interest.subscriber):
        days.live(int(name), list(group))
    backends, channels = days.backends, _channels()
    numbers = {channel.name: number for number, channel in enumerate(channels)}
    return Scenario(
        "city",
        float(tracks.seconds),
        [
            ScenarioBroker(f"broker{n}", x, y, o.capacity)
            for n, (x, y) in enumerate(sites(tracks.locations, o.brokers).tolist())
        ],
        channels,
        BackendSubscriptions([numbers[backend.channel] for backend in backends], [0.0] * len(backends)),
        InitialLocations([x for x, _ in days.first], [y for _, y in days.first]),
        logins=days.logins,
        logouts=days.logouts,
        subscribes=days.subscribes,
        unsubscribes=days.unsubscribes,
        rates=Findings(tracks, land.shelters).rates(channels, backends),
        moves=days.moves,
    )


@cache
def _channels() -> list[ScenarioChannel]:
    """The application's channels."""
    found = [each.definition for each in parse(APPLICATION.read_text()) if isinstance(each, CreateChannel)]
    return [ScenarioChannel(each.name, float(each.period or 0)) for each in found]

"""Who takes part in the demo, and what they subscribe to.

The world is seeded, so what will be reported is known: the subscriptions are those to which much happens in the first
seconds. Two people want the same thing, for which the data cluster holds one subscription.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np

from tocsin.apps.emergency import Second, World
from tocsin.apps.emergency.city import district
from tocsin.apps.emergency.roads import Floats

LOOK_AHEAD_SECONDS: Final = 30
NEAR_METRES: Final = 500.0
FAR_METRES: Final = 1000.0
_GRAVE: Final = 4
# Who is just within reach when a report is made may be out of it when the channel runs.
_SURELY_WITHIN: Final = 0.8

Report = dict[str, Any]
K = TypeVar("K")


@dataclass(frozen=True)
class Part:
    """A subscription and those who want it."""

    people: tuple[str, ...]
    channel: str
    parameters: dict[str, Any]

    @property
    def who(self) -> str:
        """Their names."""
        return " and ".join(self.people)

    @property
    def subscription(self) -> str:
        """The channel with the values of its parameters."""
        values = (f"{value:g}" if isinstance(value, float) else str(value) for value in self.parameters.values())
        return f"{self.channel}({', '.join(values)})"


def cast(world: World) -> list[Part]:
    """Subscriptions to all seven channels of the emergency application."""
    seconds = list(islice(world.seconds(), LOOK_AHEAD_SECONDS))
    reports = [report for second in seconds for report in second.reports]
    types = _most(reports, _type, world.event_types)
    places = _most(reports, _place, world.city.districts())
    cases = _most(reports, lambda r: (_type(r), _place(r)), [(types[0], place) for place in places])
    crowd = _Crowd(world, seconds)
    return [
        Part(("Aino", "Bilal"), "EmergenciesOfType", {"event": types[0]}),
        Part(("Chiara",), "EmergenciesOfType", {"event": types[1]}),
        Part(("Daniel",), "EmergenciesAtLocation", {"location": places[0]}),
        Part(("Elif",), "EmergenciesNearMe", crowd.best(NEAR_METRES, grave=True)),
        Part(("Farah",), "EmergenciesOfTypeNearMe", {**crowd.best(FAR_METRES), "radius": FAR_METRES}),
        Part(("Goran",), "EmergenciesOfTypeWithShelterNearMe", crowd.best(NEAR_METRES)),
        Part(("Hanna",), "EmergenciesOfTypeAtLocation", _case(*cases[0])),
        Part(("Imre",), "EmergenciesOfTypeAtLocationWithShelter", _case(*cases[1])),
    ]


def _type(report: Report) -> str:
    return str(report["etype"])


def _place(report: Report) -> str:
    return district(report["x"], report["y"])


def _case(event: str, location: str) -> dict[str, Any]:
    return {"event": event, "location": location}


def _most(reports: Iterable[Report], key: Callable[[Report], K], otherwise: Iterable[K]) -> list[K]:
    """The keys of the reports, the commonest first, then others so that there are always some."""
    found = [value for value, _ in Counter(map(key, reports)).most_common()]
    return [*found, *(value for value in otherwise if value not in found)]


class _Crowd:
    """The people of the world and how far each is from each report, when it is made."""

    def __init__(self, world: World, seconds: list[Second]) -> None:
        self._people, self._types, self._chosen = world.subscribers, world.event_types, set[int]()
        self._reports = [report for second in seconds for report in second.reports]
        away = [_distances(second, report) for second in seconds for report in second.reports]
        self._away = np.array(away).reshape(len(away), len(self._people))

    def best(self, radius: float, *, grave: bool = False) -> dict[str, Any]:
        """The event and user with the most reports within ``radius``; with ``grave``, grave ones of any type too."""
        within = self._away <= radius * _SURELY_WITHIN
        found = np.array([within[self._wanted(event, grave)].sum(axis=0) for event in self._types])
        found[:, list(self._chosen)] = -1
        event, user = np.unravel_index(int(found.argmax()), found.shape)
        if len(self._chosen) + 1 < len(self._people):
            self._chosen.add(int(user))
        return {"event": self._types[int(event)], "user": self._people[int(user)]}

    def _wanted(self, event: str, grave: bool) -> list[bool]:
        return [_type(r) == event or (grave and r["severity"] >= _GRAVE) for r in self._reports]


def _distances(second: Second, report: Report) -> Floats:
    places = np.array([(location["x"], location["y"]) for location in second.locations])
    distances: Floats = np.hypot(*(places - (report["x"], report["y"])).T)
    return distances

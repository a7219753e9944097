"""Emergency reports: records of the EmergencyReports dataset, 200 to 700 bytes of JSON each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from tocsin.apps.emergency.city import district
from tocsin.apps.emergency.roads import Floats

SEVERITIES = ("Minor", "Moderate", "Serious", "Severe", "Extreme")
# How likely each severity is: most emergencies are small.
SEVERITY_SHARES = (0.30, 0.28, 0.22, 0.13, 0.07)

# What is said of each type of emergency: first what happened, then any of the other sentences.
TYPES: dict[str, tuple[str, ...]] = {
    "flood": (
        "Water is rising fast and stands in the street",
        "Cellars and underpasses are filling up.",
        "Do not drive through standing water, it is deeper than it looks.",
        "A pump crew is on its way.",
        "Move to the upper floors.",
    ),
    "fire": (
        "A building is on fire and smoke drifts over the street",
        "Keep doors and windows closed.",
        "The fire has reached the roof of the house next door.",
        "Three engines are at the scene.",
        "Leave the hydrants and the access road free.",
    ),
    "storm": (
        "Gusts have brought down trees and part of a roof",
        "Loose tiles are still falling.",
        "Stay away from scaffolding, trees and overhead lines.",
        "The tram line is blocked by branches.",
        "The wind is expected to ease within two hours.",
    ),
    "earthquake": (
        "Shaking was felt and walls show fresh cracks",
        "Aftershocks are possible, stay clear of facades.",
        "Do not use lifts.",
        "Building inspectors are checking the older houses.",
        "Shut off the gas if you can do so safely.",
    ),
    "explosion": (
        "A blast was heard and windows are broken along the street",
        "The cause is not known yet.",
        "There is broken glass on both pavements.",
        "The area is closed off for a hundred metres around.",
        "Do not touch anything that looks out of place.",
    ),
    "spill": (
        "A tank is leaking an unknown liquid with a strong smell",
        "Go against the wind, away from the place.",
        "Switch off ventilation that draws air from outside.",
        "Do not touch the liquid, and keep animals away from it.",
        "Specialists in protective suits are measuring the air.",
    ),
    "collapse": (
        "Part of a structure has come down and blocks the road",
        "People may be under the rubble, please keep quiet nearby.",
        "Search dogs have been called.",
        "The buildings to both sides are being emptied.",
        "Heavy lifting gear is needed and under way.",
    ),
    "accident": (
        "Several vehicles have collided and block the crossing",
        "Two ambulances are at the scene.",
        "Fuel is on the road, do not smoke.",
        "Traffic is led around by the next street.",
        "Drivers, form a lane for the rescue services.",
    ),
}
ANY = (
    "Follow the instructions of the crews at the scene.",
    "Keep the phone lines free for those who need help.",
    "Look after neighbours who cannot move on their own.",
    "Shelters in the district are open.",
    "This message will be followed by another when more is known.",
    "Streets around the place are closed to all but emergency vehicles.",
    "If you are not affected, please keep away.",
    "Reported by a mobile crew and confirmed by the control room.",
)

# Between these a report's intended size is drawn; it ends with the sentence that reaches it.
SMALLEST, LARGEST = 200, 620


class Reporter:
    """Makes the reports of each second, about ``per_second`` of them, where the publishers are."""

    def __init__(self, rng: np.random.Generator, publishers: Sequence[str], per_second: float) -> None:
        self._rng, self._publishers, self._per_second = rng, publishers, per_second
        self._types = list(TYPES)

    def reports(self, at: datetime, positions: Floats) -> list[dict[str, Any]]:
        """The reports of the second ``at``, ``positions`` having a row (x, y) for each publisher."""
        return [self._report(at, positions, number) for number in range(self._rng.poisson(self._per_second))]

    def _report(self, at: datetime, positions: Floats, number: int) -> dict[str, Any]:
        who = int(self._rng.integers(len(self._publishers)))
        severity = int(self._rng.choice(len(SEVERITIES), p=SEVERITY_SHARES)) + 1
        record = {
            "id": f"{self._publishers[who]}-{at:%Y%m%dT%H%M%S}-{number}",
            "etype": self._types[self._rng.integers(len(self._types))],
            "severity": severity,
            "x": round(float(positions[who, 0]), 1),
            "y": round(float(positions[who, 1]), 1),
            "message": "",
            "at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        }
        record["message"] = self._message(record)
        return record

    def _message(self, record: dict[str, Any]) -> str:
        """As many sentences as bring the record to a size drawn at random."""
        happened, *details = TYPES[record["etype"]]
        where = district(record["x"], record["y"])
        message = f"{SEVERITIES[record['severity'] - 1]} {record['etype']} in district {where}: {happened}."
        wanted = self._rng.integers(SMALLEST, LARGEST) - len(msgspec.json.encode(record))
        sentences = [*self._rng.permutation(details).tolist(), *self._rng.permutation(ANY).tolist()]
        for sentence in sentences:
            if len(message) >= wanted:
                break
            message += f" {sentence}"
        return message

"""The application file says what the paper's table of channels says, and what the seeded world relies on."""

from __future__ import annotations

import re

from tocsin.apps.emergency import APPLICATION
from tocsin.apps.emergency.city import DISTRICT
from tocsin.apps.emergency.interests import CHANNELS

SQL = APPLICATION.read_text(encoding="utf-8")
DECLARED = re.findall(r"CREATE REPETITIVE CHANNEL (\w+)\(([^)]*)\) PERIOD (\d+) SECONDS", SQL)


def test_the_seven_channels_have_the_periods_of_the_paper() -> None:
    assert {name: int(period) for name, _, period in DECLARED} == {
        "EmergenciesOfType": 10,
        "EmergenciesAtLocation": 20,
        "EmergenciesNearMe": 10,
        "EmergenciesOfTypeNearMe": 10,
        "EmergenciesOfTypeAtLocation": 30,
        "EmergenciesOfTypeWithShelterNearMe": 10,
        "EmergenciesOfTypeAtLocationWithShelter": 30,
    }


def test_interests_name_the_channels_and_parameters_that_are_declared() -> None:
    declared = {name: tuple(p.split()[0] for p in parameters.split(",")) for name, parameters, _ in DECLARED}
    assert declared == {name: parameters for name, (_, parameters) in CHANNELS.items()}


def test_channels_reckon_with_the_districts_of_the_city() -> None:
    within = re.findall(r"floor\(CASE WHEN r\.([xy]) >= 0 AND r\.\1 < (\d+) THEN r\.\1 END / (\d+)\)", SQL)
    assert {axis for axis, _, _ in within} == {"x", "y"}
    assert {float(side) for _, _, side in within} == {DISTRICT}
    assert {float(end) for _, end, _ in within} == {190 * DISTRICT}, "the last that has a letter of its own"

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tocsin.apps.emergency import World
from tocsin.apps.emergency.ground import ground
from tocsin.demo.network import network, whereabouts
from tocsin.demo.play import HOLD_SECONDS, hold_seconds
from tocsin.settings import Settings, load


@pytest.mark.parametrize("seed", [0, 7, 11])
def test_the_broker_in_the_centre_begins_with_far_more_than_its_share(tmp_path: Path, seed: int) -> None:
    brokers = network(Settings(), tmp_path, 5, [], ground(seed)).broker_parts()
    places = np.array([part.settings["broker.location"] for part in brokers])
    people = np.array([(place["x"], place["y"]) for place in next(World(seed).seconds()).locations])
    nearest = np.linalg.norm(people[:, None] - places[None], axis=2).argmin(axis=1)
    assert np.bincount(nearest)[0] > 0.5 * len(people)


def test_the_settings_of_the_demo_are_allowed(tmp_path: Path) -> None:
    net = network(Settings(), tmp_path, 7, [], ground(7))
    assert len(whereabouts(net.names)) == 7
    for part in (net.data(), net.coordinator(), *net.broker_parts()):
        load(overrides=[f"{key}={value}" for key, value in part.settings.items()], environ={})


def test_balancing_is_held_off_for_half_of_a_short_demo() -> None:
    assert (hold_seconds(None), hold_seconds(300), hold_seconds(20), hold_seconds(1)) == (
        HOLD_SECONDS,
        HOLD_SECONDS,
        10,
        1,
    )

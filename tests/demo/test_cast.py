from __future__ import annotations

from itertools import islice

import pytest

from tocsin.apps.emergency import APPLICATION, World
from tocsin.apps.emergency.city import district
from tocsin.data.sql.forms import CreateChannel
from tocsin.data.sql.statements import parse
from tocsin.demo.cast import LOOK_AHEAD_SECONDS, Part, cast

PARAMETERS = {
    statement.definition.name: [parameter.name for parameter in statement.definition.parameters]
    for statement in parse(APPLICATION.read_text(encoding="utf-8"))
    if isinstance(statement, CreateChannel)
}


def test_every_channel_of_the_application_is_subscribed_to_with_its_parameters() -> None:
    parts = cast(World(7))
    assert {part.channel for part in parts} == set(PARAMETERS)
    assert all(list(part.parameters) == PARAMETERS[part.channel] for part in parts)


@pytest.mark.parametrize("seed", [0, 7, 8])
def test_something_happens_soon_to_every_subscription(seed: int) -> None:
    world = World(seed)
    assert [part for part in cast(world) if not _matches(world, part)] == []


def test_the_same_seed_gives_the_same_cast() -> None:
    assert cast(World(3)) == cast(World(3))


def test_two_people_share_a_subscription_and_no_others_do() -> None:
    parts = cast(World(7))
    assert parts[0].who == "Aino and Bilal"
    assert len({part.subscription for part in parts}) == len(parts)


def test_nobody_near_is_another_persons_stand_in() -> None:
    users = [part.parameters["user"] for part in cast(World(7)) if "user" in part.parameters]
    assert len(set(users)) == 3


@pytest.mark.parametrize(("people", "reports"), [(1, 5.6), (2, 0.0)])
def test_a_small_or_quiet_world_has_a_cast_too(people: int, reports: float) -> None:
    parts = cast(World(7, people=people, reports_per_second=reports))
    assert {part.channel for part in parts} == set(PARAMETERS)


def test_a_subscription_is_written_like_a_call() -> None:
    part = Part(("Ada",), "EmergenciesOfTypeNearMe", {"event": "fire", "user": "p1", "radius": 1000.0})
    assert part.subscription == "EmergenciesOfTypeNearMe(fire, p1, 1000)"


def _matches(world: World, part: Part) -> int:
    """How many of the first reports the channel would tell of, reckoned the plain way."""
    wanted = part.parameters
    radius = wanted.get("radius", 500.0)
    count = 0
    for second in islice(world.seconds(), LOOK_AHEAD_SECONDS):
        places = {location["userId"]: (location["x"], location["y"]) for location in second.locations}
        for report in second.reports:
            grave = part.channel == "EmergenciesNearMe" and report["severity"] >= 4
            if "event" in wanted and report["etype"] != wanted["event"] and not grave:
                continue
            if "location" in wanted and district(report["x"], report["y"]) != wanted["location"]:
                continue
            if "user" in wanted:
                x, y = places[wanted["user"]]
                if (report["x"] - x) ** 2 + (report["y"] - y) ** 2 > radius**2:
                    continue
            count += 1
    return count

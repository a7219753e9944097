"""The world as a whole: records fit for the feeds, as many as in the paper, all from one seed."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pytest

from tocsin.apps.emergency import Second, World
from tocsin.apps.emergency.city import district
from tocsin.errors import InvalidError


@pytest.fixture(scope="module")
def minutes() -> list[Second]:
    return list(islice(World(5).seconds(), 300))


@pytest.fixture(scope="module")
def reports(minutes: list[Second]) -> list[dict[str, Any]]:
    return [report for second in minutes for report in second.reports]


def test_the_same_seed_gives_the_same_world_as_often_as_it_is_run() -> None:
    world, again, other = World(3, people=20), World(3, people=20), World(4, people=20)
    first = list(islice(world.seconds(), 30))
    assert first == list(islice(world.seconds(), 30)) == list(islice(again.seconds(), 30))
    assert world.shelters() == again.shelters()
    assert world.interests() == again.interests()
    assert first != list(islice(other.seconds(), 30))
    assert world.shelters() != other.shelters()


def test_each_second_tells_where_everybody_is(minutes: list[Second]) -> None:
    assert [second.at for second in minutes] == list(range(300))
    assert {tuple(record["userId"] for record in second.locations) for second in minutes} == {
        tuple(World(5).subscribers)
    }
    assert minutes[61].locations[0].keys() == {"userId", "x", "y", "at"}
    assert minutes[61].locations[0]["at"] == "2026-01-01T00:01:01Z"


def test_reports_come_at_the_rate_asked_for(reports: list[dict[str, Any]]) -> None:
    assert len(reports) == pytest.approx(5.6 * 300, rel=0.1)
    busier = [len(second.reports) for second in islice(World(5, reports_per_second=50, people=1).seconds(), 60)]
    assert sum(busier) == pytest.approx(3000, rel=0.1)
    assert not any(second.reports for second in islice(World(5, reports_per_second=0, people=1).seconds(), 60))


def test_a_report_takes_200_to_700_bytes_however_it_is_spaced(reports: list[dict[str, Any]]) -> None:
    compact = [len(json.dumps(report, separators=(",", ":"))) for report in reports]
    spaced = [len(json.dumps(report)) for report in reports]
    assert min(compact) >= 200
    assert max(spaced) <= 700
    assert max(spaced) - min(spaced) > 350


def test_reports_have_ids_of_their_own_and_are_of_eight_types_and_five_severities(
    reports: list[dict[str, Any]],
) -> None:
    assert len({report["id"] for report in reports}) == len(reports)
    assert {report["etype"] for report in reports} == set(World(5).event_types)
    assert len(World(5).event_types) == 8
    assert {report["severity"] for report in reports} == {1, 2, 3, 4, 5}


def test_a_message_says_what_is_where(reports: list[dict[str, Any]]) -> None:
    for report in reports[:50]:
        assert f"{report['etype']} in district {district(report['x'], report['y'])}: " in report["message"]


def test_reports_come_from_all_publishers_and_all_over_the_city(reports: list[dict[str, Any]]) -> None:
    assert {report["id"].split("-")[0] for report in reports} == {f"e{number}" for number in range(400, 408)}
    assert len({district(report["x"], report["y"]) for report in reports}) > 40


def test_a_later_start_gives_other_ids_and_times_but_the_same_events() -> None:
    # 02:00 two hours east of Greenwich: records are in UTC whatever zone the start is given in.
    start = datetime(2030, 5, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    early, late = (list(islice(world.seconds(), 20)) for world in (World(1, people=5), World(1, people=5, start=start)))
    a, b = ([report for second in seconds for report in second.reports] for seconds in (early, late))
    assert [report["message"] for report in a] == [report["message"] for report in b]
    assert not {report["id"] for report in a} & {report["id"] for report in b}
    assert late[0].locations[0]["at"] == "2030-05-01T00:00:00Z"


def test_shelters_have_names_of_their_own_and_room_for_people() -> None:
    shelters = World(2, shelters=450).shelters()
    assert len({shelter["id"] for shelter in shelters}) == len({shelter["name"] for shelter in shelters}) == 450
    assert all(50 <= shelter["capacity"] <= 1000 for shelter in shelters)


@pytest.mark.parametrize("seed", [0, 1, 7, 42])
def test_interests_are_shared_as_much_as_in_the_paper(seed: int) -> None:
    interests = World(seed).interests()
    backend = {(interest.channel, json.dumps(interest.params, sort_keys=True)) for interest in interests}
    assert len(interests) == pytest.approx(2200, rel=0.1)
    assert len(backend) == pytest.approx(610, rel=0.15)


def test_everyone_takes_one_to_five_channels_with_one_to_three_subscriptions() -> None:
    world = World(9)
    counts = Counter((interest.subscriber, interest.channel) for interest in world.interests())
    channels = Counter(subscriber for subscriber, _ in counts)
    assert set(channels) == set(world.subscribers)
    assert set(channels.values()) == {1, 2, 3, 4, 5}
    assert set(counts.values()) == {1, 2, 3}


def test_nobody_subscribes_twice_to_the_same_or_near_anybody_else() -> None:
    world = World(9)
    interests = world.interests()
    assert all(interest not in interests[:number] for number, interest in enumerate(interests[:300]))
    assert all(interest.params.get("user", interest.subscriber) == interest.subscriber for interest in interests)
    assert {i.params["location"] for i in interests if "location" in i.params} <= set(world.ground.districts)
    assert {i.params["event"] for i in interests if "event" in i.params} == set(world.event_types)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"people": 0}, "people must be at least 1"),
        ({"reports_per_second": -0.5}, "reports_per_second must be at least 0"),
        ({"start": datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)}, "has no time zone"),
    ],
)
def test_a_world_that_cannot_be_is_refused(setting: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidError, match=complaint):
        World(**setting)

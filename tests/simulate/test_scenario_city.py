"""People of a city as a scenario: on seeded roads, a road map, or as recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.errors import InvalidError
from tocsin.simulate.scenario import Scenario, ScenarioChannel, check, read, write
from tocsin.simulate.scenarios.city import CityScenario, city
from tocsin.simulate.scenarios.findings import CitySubscription, Findings
from tocsin.simulate.scenarios.order import check_order
from tocsin.simulate.scenarios.tracks import CityTracks, Report

SMALL = CityScenario(subscribers=60, seconds=900, arriving=60, deciding=60, online=(100, 200), offline=(20, 60))
SQUARE = "LINESTRING (0 0, 1000 0, 1000 1000)\nLINESTRING (1000 1000, 0 1000, 0 0)\n"


def trace(path: Path, nodes: dict[str, tuple[float, float]], seconds: int = 120, speed: float = 10.0) -> Path:
    """Everybody goes east from where they are first."""
    rows = [(t, node, x + speed * t, y) for t in range(seconds) for node, (x, y) in nodes.items()]
    columns = dict(zip(("t", "node", "x", "y"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), path)
    return path


def nearest(scenario: Scenario) -> list[int]:
    """How many subscribers begin nearest to each broker."""
    brokers = np.array([(broker.x, broker.y) for broker in scenario.brokers])
    people = np.stack([scenario.subscribers.x, scenario.subscribers.y], axis=-1)
    chosen = np.linalg.norm(people[:, None] - brokers[None], axis=-1).argmin(axis=1)
    return [int(count) for count in np.bincount(chosen, minlength=len(brokers))]


@pytest.mark.slow
def test_the_same_seed_makes_the_same_city() -> None:
    assert city(SMALL, 1) == city(SMALL, 1) != city(SMALL, 2)


def test_all_tables_have_rows_that_can_happen(tmp_path: Path) -> None:
    write(tmp_path / "city.json", city(SMALL, 1))
    scenario = read(tmp_path / "city.json")
    check_order(scenario)
    for table in ("logins", "logouts", "subscribes", "unsubscribes", "rates", "moves"):
        assert getattr(scenario, table).at, table


def test_most_people_live_near_the_broker_in_the_middle() -> None:
    middle, *others = nearest(city(CityScenario(seconds=60), 1))
    assert middle > 2 * max(others)


@pytest.mark.slow
def test_people_want_about_what_those_of_the_paper_wanted() -> None:
    scenario = city(CityScenario(online=(3000, 3000)), 1)
    assert 2000 < len(scenario.subscribes.at) < 2500
    assert 500 < len(scenario.lines.channel) < 700


def test_whoever_comes_back_in_another_district_follows_that_one() -> None:
    scenario = city(SMALL, 1)
    swapped = set(zip(scenario.unsubscribes.at, scenario.unsubscribes.subscriber, strict=True))
    logins = set(zip(scenario.logins.at, scenario.logins.subscriber, strict=True))
    subscribed = set(zip(scenario.subscribes.at, scenario.subscribes.subscriber, strict=True))
    assert swapped <= logins
    assert swapped <= subscribed


def test_people_walk_on_the_roads_of_a_map(tmp_path: Path) -> None:
    roads = tmp_path / "square.wkt"
    roads.write_text(SQUARE)
    scenario = city(CityScenario(subscribers=20, seconds=300, roads=roads, arriving=30), 1)
    check(scenario)
    assert scenario.moves.at
    places = zip(scenario.moves.x + scenario.subscribers.x, scenario.moves.y + scenario.subscribers.y, strict=True)
    assert all(x in (0, 1000) or y in (0, 1000) for x, y in places)


def test_people_of_a_trace_are_where_they_were(tmp_path: Path) -> None:
    nodes = {"p0": (0.0, 100.0), "c1": (500.0, 900.0), "e2": (400.0, 400.0)}
    path = trace(tmp_path / "trace.parquet", nodes)
    scenario = city(CityScenario(trace=path, seconds=1800, arriving=1, brokers=3), 1)
    assert scenario.seconds == 120
    assert (scenario.subscribers.x, scenario.subscribers.y) == ([0.0, 500.0], [100.0, 900.0])
    rows = zip(scenario.moves.at, scenario.moves.subscriber, scenario.moves.x, scenario.moves.y, strict=True)
    walked = [row[::2] for row in rows if row[1] == 0]
    assert walked == [(30.0, 300.0), (60.0, 600.0), (90.0, 900.0)]


def test_of_a_trace_without_publishers_the_people_report(tmp_path: Path) -> None:
    path = trace(tmp_path / "trace.parquet", {f"p{n}": (10.0 * n, 10.0) for n in range(20)}, speed=0)
    scenario = city(CityScenario(trace=path, arriving=1), 1)
    assert scenario.rates.at
    assert scenario.moves.at == []


def test_what_a_trace_cannot_be_is_said(tmp_path: Path) -> None:
    one = trace(tmp_path / "one.parquet", {"p0": (0.0, 0.0)})
    with pytest.raises(InvalidError, match=r"has 1 people .*; more cannot subscribe"):
        city(CityScenario(subscribers=2, trace=one))
    with pytest.raises(InvalidError, match="has 0 people"):
        city(CityScenario(trace=trace(tmp_path / "none.parquet", {"e0": (0.0, 0.0)})))
    with pytest.raises(InvalidError, match=r"in second 0 somebody is at -40000 m, .*; move the origin"):
        city(CityScenario(trace=trace(tmp_path / "west.parquet", {"p0": (-40_000.0, 0.0)})))
    with pytest.raises(InvalidError, match=r"followed for 5 s; .* at least 10 s"):
        city(CityScenario(trace=trace(tmp_path / "short.parquet", {"p0": (0.0, 0.0)}, seconds=5)))


REPORTS = [
    Report(0, "fire", "A1", 5, 100, 100, 300),
    Report(9, "fire", "B1", 1, 600, 100, 400),
    Report(10, "flood", "A1", 1, 100, 100, 500),
]


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        (CitySubscription("EmergenciesOfType", event="fire"), [(10, 700), (20, 0)]),
        (CitySubscription("EmergenciesAtLocation", location="A1"), [(10, 300), (20, 500)]),
        (CitySubscription("EmergenciesOfTypeAtLocation", event="fire", location="B1"), [(10, 400), (20, 0)]),
        (CitySubscription("EmergenciesOfTypeNearMe", event="fire", person=0, radius=250.0), [(10, 300), (20, 0)]),
        (CitySubscription("EmergenciesOfTypeNearMe", event="fire", person=0, radius=1000.0), [(10, 700), (20, 0)]),
        (CitySubscription("EmergenciesNearMe", event="flood", person=0), [(10, 300), (20, 500)]),
    ],
)
def test_an_execution_finds_what_was_reported_since_the_one_before(
    line: CitySubscription, rows: list[tuple[float, float]]
) -> None:
    tracks = CityTracks(20, np.full((2, 1, 2), 100.0), REPORTS)
    rates = Findings(tracks, []).rates([ScenarioChannel(line.channel, 10.0)], [line])
    assert list(zip(rates.at, rates.bytes, strict=True)) == rows


def test_reports_with_shelters_are_longer_by_those_near_them() -> None:
    tracks = CityTracks(10, np.full((1, 1, 2), 100.0), REPORTS[:1])
    shelters = [{"id": "s0", "x": 100.0, "y": 200.0}, {"id": "s1", "x": 100.0, "y": 700.0}]
    line = CitySubscription("EmergenciesOfTypeAtLocationWithShelter", event="fire", location="A1")
    rates = Findings(tracks, shelters).rates([ScenarioChannel(line.channel, 10.0)], [line])
    assert rates.bytes == [300 + len('{"id":"s0","x":100.0,"y":200.0}')]


def test_a_place_that_is_told_too_often_is_refused() -> None:
    with pytest.raises(InvalidError, match="telling is 15; it must be a multiple of 10 seconds"):
        CityScenario(telling=15)

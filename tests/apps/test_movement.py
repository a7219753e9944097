"""Movement, seeded or recorded: on the roads, at the speeds of feet and cars, the same every time."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.apps.emergency import City, Traces
from tocsin.apps.emergency.people import DRIVER, ROAMER, WALKER, WINDOW, Population
from tocsin.apps.emergency.roads import Floats, Roads
from tocsin.errors import InvalidError

SECONDS = 4 * WINDOW + 7


@pytest.fixture(scope="module")
def city() -> City:
    return City.from_seed(11)


@pytest.fixture(scope="module")
def walked(city: City) -> Floats:
    return np.stack(list(islice(Population(city.roads, 11, people=50, publishers=4).positions(), SECONDS)))


def distances_to_roads(roads: Roads, places: Floats) -> Floats:
    """How far each place is from the nearest road."""
    start, end = roads.points[roads.links[:, 0]], roads.points[roads.links[:, 1]]
    along = end - start
    nearest = np.full(len(places), np.inf)
    for origin, way in zip(start, along, strict=True):
        part = np.clip((places - origin) @ way / (way @ way), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(places - origin - part[:, None] * way, axis=1))
    return nearest


def test_people_are_walkers_and_drivers_and_publishers_come_after_them(city: City) -> None:
    crowd = Population(city.roads, 0, people=10, publishers=2)
    assert crowd.people == ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "c7", "c8", "c9"]
    assert crowd.publishers == ["e10", "e11"]


def test_everybody_is_on_a_road_all_the_time(city: City, walked: Floats) -> None:
    assert distances_to_roads(city.roads, walked.reshape(-1, 2)).max() < 1e-6


def test_nobody_is_faster_than_their_kind_and_everybody_moves(walked: Floats) -> None:
    steps = np.linalg.norm(np.diff(walked, axis=0), axis=2)
    fastest = [WALKER.fastest] * 35 + [DRIVER.fastest] * 15 + [ROAMER.fastest] * 4
    assert (steps <= np.array(fastest) + 1e-9).all()
    assert (steps.max(axis=0) > 0).all()


def test_publishers_never_rest(walked: Floats) -> None:
    assert (np.linalg.norm(np.diff(walked[:, 50:], axis=0), axis=2) > 0).all()


def test_the_same_seed_moves_people_the_same_way(city: City, walked: Floats) -> None:
    crowd = Population(city.roads, 11, people=50, publishers=4)
    assert np.array_equal(np.stack(list(islice(crowd.positions(), SECONDS))), walked)
    assert np.array_equal(np.stack(list(islice(crowd.positions(), SECONDS))), walked)
    assert not np.array_equal(next(Population(city.roads, 12, people=50, publishers=4).positions()), walked[0])


def test_a_walker_goes_the_same_way_in_a_larger_crowd(city: City, walked: Floats) -> None:
    larger = np.stack(list(islice(Population(city.roads, 11, people=100).positions(), SECONDS)))
    assert np.array_equal(larger[:, :35], walked[:, :35])


def write_traces(folder: Path, rows: list[tuple[int, str, float, float]]) -> Path:
    path = folder / "traces.parquet"
    columns = dict(zip(("t", "node", "x", "y"), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table(
        {
            "t": pa.array(columns["t"], pa.int16()),
            "node": pa.array(columns["node"]).dictionary_encode(),
            "x": pa.array(columns["x"], pa.float32()),
            "y": pa.array(columns["y"], pa.float32()),
        }
    )
    pq.write_table(table, path)
    return path


def test_traces_give_people_then_publishers_second_by_second(tmp_path: Path) -> None:
    rows = [(2, "c1", 3.5, 4.0), (1, "e2", 9.0, 9.0), (1, "p0", 1.0, 2.0), (1, "c1", 3.0, 4.0), (2, "p0", 1.5, 2.0)]
    traces = Traces(write_traces(tmp_path, [*rows, (2, "e2", 8.0, 9.0)]))
    assert (traces.people, traces.publishers) == (["c1", "p0"], ["e2"])
    assert [second.tolist() for second in traces.positions()] == [
        [[3.0, 4.0], [1.0, 2.0], [9.0, 9.0]],
        [[3.5, 4.0], [1.5, 2.0], [8.0, 9.0]],
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "p0", 1.0, 2.0), (2, "p0", 1.0, 2.0), (1, "p1", 1.0, 2.0)],
        [(1, "p0", 1.0, 2.0), (1, "p0", 1.0, 2.0)],
        [(1, "p0", 1.0, 2.0), (3, "p0", 1.0, 2.0)],
        [(1, "p0", 1.0, 2.0), (1, "p1", 1.0, 2.0), (2, "p0", 1.0, 2.0), (2, "p0", 1.0, 2.0)],
    ],
)
def test_traces_with_a_gap_or_a_repetition_are_refused(
    tmp_path: Path, rows: list[tuple[int, str, float, float]]
) -> None:
    with pytest.raises(InvalidError, match="exactly one position in each second"):
        Traces(write_traces(tmp_path, rows))


def test_traces_without_a_column_they_need_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1], "node": ["p0"], "x": [1.0]}), tmp_path / "short.parquet")
    with pytest.raises(InvalidError, match="lack all or some of y"):
        Traces(tmp_path / "short.parquet")


def test_a_file_that_is_not_parquet_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "traces.csv").write_text("t,node,x,y\n", encoding="utf-8")
    with pytest.raises(InvalidError, match=r"traces\.csv: cannot be read"):
        Traces(tmp_path / "traces.csv")

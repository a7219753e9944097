"""The city: seeded or read from a map, always connected, in districts that have names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tocsin.apps.emergency.city import HEIGHT, WIDTH, City, district
from tocsin.apps.emergency.roads import Roads, components
from tocsin.errors import InvalidError


def write_map(folder: Path, *lines: str) -> Path:
    path = folder / "roads.wkt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_a_seeded_city_is_connected_and_lies_within_its_bounds(seed: int) -> None:
    roads = City.from_seed(seed).roads
    assert len(set(components(len(roads.points), roads.links.tolist()))) == 1
    assert len(roads.points) > 300
    assert roads.points.min() >= 0
    assert (roads.points < [WIDTH, HEIGHT]).all()


def test_a_seed_gives_one_city_and_another_seed_another() -> None:
    one, same, other = (City.from_seed(seed).roads for seed in (1, 1, 2))
    assert np.array_equal(one.points, same.points)
    assert np.array_equal(one.links, same.links)
    assert not np.array_equal(one.points, other.points)


def test_the_way_between_two_points_is_the_shortest_one() -> None:
    square = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 100.0], [0.0, 100.0], [0.0, 300.0]])
    roads = Roads(square, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])
    assert roads.path(0, 2).tolist() == [[0, 0], [100, 0], [100, 100]]
    assert roads.path(4, 2).tolist() == [[0, 300], [0, 100], [100, 100]]
    assert roads.path(3, 3).tolist() == [[0, 100]]


def test_districts_are_named_by_letters_eastwards_and_numbers_northwards() -> None:
    assert [district(0, 0), district(499.9, 500), district(500, 0), district(4499, 3399)] == ["A1", "A2", "B1", "I7"]


def test_districts_with_more_roads_come_first() -> None:
    city = City(Roads(np.array([[10.0, 10.0], [600.0, 10.0], [700.0, 10.0]]), [(0, 1), (1, 2)]))
    assert city.districts() == ["B1", "A1"]


def test_lines_of_a_map_meet_where_they_share_a_point(tmp_path: Path) -> None:
    path = write_map(tmp_path, "LINESTRING (0 0, 100.0 0.0, 100 50)", "", "linestring(100 0.0, 200 0)")
    roads = City.from_wkt(path).roads
    assert len(roads.points) == 4
    assert len(roads.links) == 3


def test_only_the_largest_connected_part_of_a_map_is_used(tmp_path: Path) -> None:
    path = write_map(tmp_path, "LINESTRING (900 900, 950 950)", "LINESTRING (0 0, 100 0, 200 0)")
    assert City.from_wkt(path).roads.points.tolist() == [[0, 0], [100, 0], [200, 0]]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("POINT (1 2)", "line 2: expected LINESTRING"),
        ("LINESTRING (1 2, 3)", "line 2: expected two numbers x y, found '3'"),
        ("LINESTRING (1 2, a b)", "found 'a b'"),
        ("LINESTRING (1 2, -1 2)", "line 2: the point -1.0 2.0 is outside"),
        ("LINESTRING (13000 2, 1 2)", "move the map's origin"),
        ("LINESTRING (1 nan, 1 2)", "is outside"),
    ],
)
def test_a_map_that_cannot_be_used_is_refused_with_the_line(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(InvalidError, match=complaint):
        City.from_wkt(write_map(tmp_path, "LINESTRING (0 0, 1 1)", line))


def test_a_map_without_roads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="no road"):
        City.from_wkt(write_map(tmp_path, "LINESTRING (5 5, 5 5)"))


def test_a_missing_map_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"nowhere\.wkt"):
        City.from_wkt(tmp_path / "nowhere.wkt")

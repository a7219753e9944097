"""The city: its roads, and its districts as the channels know them.

A city is made from a seed (a grid of streets, denser in the middle, with a few avenues across and a ring road around),
or read from a road map.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np

from tocsin.apps.emergency.chance import Purpose, generator
from tocsin.apps.emergency.roads import Floats, Roads, components
from tocsin.errors import InvalidError

WIDTH, HEIGHT = 4500.0, 3400.0
# The side of a district, in metres. The channels of app.sql reckon with the same squares.
DISTRICT = 500.0
# Districts have one letter from west to east, so this is as far east as they reach.
EAST = 26 * DISTRICT

COLUMNS, ROWS = 19, 15
MARGIN = 60.0
RAMPS = 24
AVENUES = 3
# How many of the streets a connected city can do without are missing.
MISSING = 0.15

_LINE = re.compile(r"\s*LINESTRING\s*\((?P<points>[^()]*)\)\s*", re.IGNORECASE)

Links = list[tuple[int, int]]


class City:
    """Roads, and the districts they run through."""

    def __init__(self, roads: Roads) -> None:
        self.roads = roads

    @classmethod
    def from_seed(cls, seed: int) -> Self:
        """A city of its own kind, 4,500 by 3,400 metres; the same for the same seed."""
        rng = generator(seed, Purpose.CITY)
        streets = _street_corners(rng)
        ring = _ring_points(rng)
        ramps = [(len(streets) + i, _nearest(streets, point)) for i, point in enumerate(ring)]
        around = [(len(streets) + i, len(streets) + (i + 1) % RAMPS) for i in range(RAMPS)]
        links = _thin_out(_street_links(), len(streets), rng) + _avenues(rng) + ramps + around
        return cls(Roads(np.concatenate([streets, ring]), links))

    @classmethod
    def from_wkt(cls, path: Path | str) -> Self:
        """The city of a road map: a text file with a ``LINESTRING (x y, x y, …)`` in metres on each line.

        Lines meet where they share a point. Only the largest connected part is used. All of the map must lie
        where districts have names: 0 ≤ x < 13,000 and y ≥ 0.
        """
        numbers: dict[tuple[float, float], int] = {}
        links: Links = []
        for line in _lines(Path(path)):
            along = [numbers.setdefault(point, len(numbers)) for point in line]
            links += pairwise(along)
        return cls(Roads(np.asarray(list(numbers), dtype=np.float64).reshape(-1, 2), links))

    def districts(self) -> list[str]:
        """The districts with a road in them, those with the most road points first."""
        counts = Counter(district(x, y) for x, y in self.roads.points.tolist())
        return sorted(counts, key=lambda name: (-counts[name], name))


def district(x: float, y: float) -> str:
    """The name of the district a place lies in, as ``location`` in the channels: A1, B1, …"""
    return f"{chr(65 + math.floor(x / DISTRICT))}{1 + math.floor(y / DISTRICT)}"


def _street_corners(rng: np.random.Generator) -> Floats:
    """Corners of a grid, closer together in the middle, each moved a little from where a ruler would have it."""
    across, up = _denser_in_the_middle(COLUMNS, WIDTH), _denser_in_the_middle(ROWS, HEIGHT)
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    moved = grid + rng.uniform(-MARGIN, MARGIN, size=grid.shape)
    return np.clip(moved, 0.0, [WIDTH - 1, HEIGHT - 1]).round(1)


def _denser_in_the_middle(count: int, length: float) -> Floats:
    steps = np.linspace(-1.0, 1.0, count)
    bent = np.sign(steps) * np.abs(steps) ** 1.2
    return np.asarray(MARGIN + (bent + 1) / 2 * (length - 2 * MARGIN))


def _corner(column: int, row: int) -> int:
    return row * COLUMNS + column


def _street_links() -> Links:
    eastward = [(_corner(c, r), _corner(c + 1, r)) for r in range(ROWS) for c in range(COLUMNS - 1)]
    northward = [(_corner(c, r), _corner(c, r + 1)) for r in range(ROWS - 1) for c in range(COLUMNS)]
    return eastward + northward


def _thin_out(links: Links, count: int, rng: np.random.Generator) -> Links:
    """The links less some that are not needed to keep all points connected."""
    kept = [link for link, here in zip(links, rng.random(len(links)) >= MISSING, strict=True) if here]
    part = components(count, kept)
    return kept + [(a, b) for a, b in links if part[a] != part[b]]


def _avenues(rng: np.random.Generator) -> Links:
    """Straight ways across the blocks, from the south edge to the north edge."""
    starts = rng.choice(COLUMNS - ROWS + 1, size=AVENUES, replace=False)
    leans = rng.permuted([True, False, True])
    avenues: Links = []
    for start, east in zip(starts.tolist(), leans.tolist(), strict=True):
        columns = range(start, start + ROWS) if east else range(start + ROWS - 1, start - 1, -1)
        corners = [_corner(column, row) for row, column in enumerate(columns)]
        avenues += pairwise(corners)
    return avenues


def _ring_points(rng: np.random.Generator) -> Floats:
    """Where ramps lead on to the ring road, an ellipse around the middle two thirds of the city."""
    angles = np.linspace(0, 2 * np.pi, RAMPS, endpoint=False) + rng.uniform(0, 2 * np.pi / RAMPS)
    middle = np.array([WIDTH, HEIGHT]) / 2
    around = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return np.asarray(middle + middle * 0.68 * around).round(1)


def _nearest(points: Floats, point: Floats) -> int:
    return int(np.linalg.norm(points - point, axis=1).argmin())


def _lines(path: Path) -> Iterator[list[tuple[float, float]]]:
    """The points of each line of a road map."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"{path}: cannot be read as a road map: {error}.") from error
    for number, text in enumerate(lines, start=1):
        if text.strip():
            yield _line(text, f"{path}, line {number}")


def _line(text: str, where: str) -> list[tuple[float, float]]:
    match = _LINE.fullmatch(text)
    if match is None:
        raise InvalidError(f"{where}: expected LINESTRING (x y, x y, …) in metres, found {text.strip()[:60]!r}.")
    points = []
    for pair in match["points"].split(","):
        try:
            x, y = (float(number) for number in pair.split())
        except ValueError:
            raise InvalidError(f"{where}: expected two numbers x y, found {pair.strip()!r}.") from None
        if not (0 <= x < EAST and 0 <= y < math.inf):
            raise InvalidError(
                f"{where}: the point {x} {y} is outside 0 ≤ x < {EAST:.0f}, y ≥ 0; move the map's origin."
            )
        points.append((x, y))
    return points

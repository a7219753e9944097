"""A road network as a graph of points in metres, with shortest paths along it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import InvalidError

Floats = NDArray[np.float64]

# Trees of shortest paths kept at hand: people share origins, and a tree serves every destination.
TREES = 1024


class Roads:
    """Points and the straight, two-way roads between them.

    Only the largest connected part of what is given is kept, so that there is a path between any two points.
    ``points`` has one row (x, y) per point, ``links`` one row (from, to) per road.
    """

    def __init__(self, points: Floats, links: Iterable[tuple[int, int]]) -> None:
        self.points, self.links = _largest_part(points, links)
        if len(self.links) == 0:
            raise InvalidError("The road map has no road between two different points; give at least one.")
        self._neighbours = _neighbours(self.points, self.links)
        self._tree = lru_cache(maxsize=TREES)(self._shortest_paths)

    def path(self, origin: int, destination: int) -> Floats:
        """The points of a shortest path, both ends included."""
        towards = self._tree(origin)
        way = [destination]
        while way[-1] != origin:
            way.append(towards[way[-1]])
        return self.points[way[::-1]]

    def pick_location(self, rng: np.random.Generator) -> tuple[float, float]:
        """A random location somewhere along a random road."""
        start, end = self.points[self.links[rng.integers(len(self.links))]]
        x, y = start + rng.random() * (end - start)
        return float(x), float(y)

    def _shortest_paths(self, origin: int) -> list[int]:
        """Dijkstra's tree: for each point, the one before it on the way from ``origin``."""
        distance = [math.inf] * len(self.points)
        before = [origin] * len(self.points)
        distance[origin] = 0.0
        queue = [(0.0, origin)]
        while queue:
            so_far, point = heapq.heappop(queue)
            if so_far > distance[point]:
                continue
            for length, neighbour in self._neighbours[point]:
                if so_far + length < distance[neighbour]:
                    distance[neighbour] = so_far + length
                    before[neighbour] = point
                    heapq.heappush(queue, (so_far + length, neighbour))
        return before


def components(count: int, links: Iterable[tuple[int, int]]) -> list[int]:
    """For each of ``count`` points, a number that is the same for all points it is connected with."""
    root = list(range(count))

    def find(point: int) -> int:
        while root[point] != point:
            root[point] = root[root[point]]
            point = root[point]
        return point

    for a, b in links:
        root[find(a)] = find(b)
    return [find(point) for point in range(count)]


def _largest_part(points: Floats, links: Iterable[tuple[int, int]]) -> tuple[Floats, NDArray[np.int64]]:
    """The largest connected part, its points renumbered and its roads without loops and repetitions."""
    distinct = sorted({(min(a, b), max(a, b)) for a, b in links if a != b})
    if not distinct:
        return points[:0], np.empty((0, 2), dtype=np.int64)
    part = np.asarray(components(len(points), distinct))
    kept = part == np.bincount(part).argmax()
    number = np.cumsum(kept) - 1
    roads = np.asarray([(number[a], number[b]) for a, b in distinct if kept[a]], dtype=np.int64)
    return points[kept], roads


def _neighbours(points: Floats, links: NDArray[np.int64]) -> list[list[tuple[float, int]]]:
    near: list[list[tuple[float, int]]] = [[] for _ in points]
    lengths = np.linalg.norm(points[links[:, 0]] - points[links[:, 1]], axis=1)
    for (a, b), length in zip(links.tolist(), lengths.tolist(), strict=True):
        near[a].append((length, b))
        near[b].append((length, a))
    return near

"""Bodies of channels of every kind there is, with the values that subscriptions give to their parameters."""

from __future__ import annotations

from tests.data.compiler.zoo.conditions import CONDITIONS
from tests.data.compiler.zoo.groups import GROUPS
from tests.data.compiler.zoo.joins import JOINS
from tests.data.compiler.zoo.near import NEAR
from tests.data.compiler.zoo.order import ORDERED
from tests.data.compiler.zoo.refused import REFUSED
from tests.data.compiler.zoo.rows import ROWS
from tests.data.compiler.zoo.subqueries import SUBQUERIES
from tests.data.compiler.zoo.tables import TABLES

__all__ = ["REFUSED", "VALUES", "ZOO"]

VALUES: dict[str, list[str | int | float]] = {
    "event": ["fire", "flood", "storm", "earthquake"],
    "least": [1, 2, 3, 4, 99],
    "user": ["u0", "u3", "u7", "nobody"],
    "date": ["2026-01-01", "2026-01-02", "2030-01-01"],
    "sym": ["A", "B", "C", "Z"],
    "threshold": [0.0, 1.25, 2.5, 100.0],
    "radius": [0.0, 5.0, 10.0, 12.5, 1000.0, -5.0],
    "metres": [0, 5, 10, 50_000, -5],
    "px": [0.0, 5.0, -30.0],
    "py": [0.0, 2.5, 10.0],
    "place": ["Hall 1", "Hall 4", "nowhere"],
    "town": ["Oulu", "oulu", "Turku"],
}

ZOO = {
    **CONDITIONS,
    **JOINS,
    **GROUPS,
    **ORDERED,
    **TABLES,
    **SUBQUERIES,
    **NEAR,
    **ROWS,
}

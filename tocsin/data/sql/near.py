"""Where ``near`` becomes an equality of grid cells, and which relation is put into the cells around it.

That pays where ``near`` is a condition of a join: its two points come from different relations, or one from a relation
and one from outside (a parameter, the SELECT around a subquery). Anywhere else it stays a plain condition.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tocsin.data.sql.reading import Reading
from tocsin.data.sql.scopes import Item, Scope, Span
from tocsin.model.definitions import Dataset, DatasetKind

_SMALLER_FIRST = [DatasetKind.REFERENCE, DatasetKind.KEYED, DatasetKind.APPEND]


@dataclass(frozen=True)
class Cells:
    """``exploded`` is put into the cells around ``here``, as its column ``column``; ``there`` lies in one of them.

    ``widest`` is the relation that the radius comes from, where it comes from one.
    """

    column: str
    scope: Scope
    exploded: Item
    here: list[Span]
    there: list[Span]
    widest: Item | None


@dataclass(frozen=True)
class Near:
    """A call of near, and the cells that it is to be checked with first, if any."""

    call: Span
    arguments: list[Span]
    cells: Cells | None

    @property
    def radius(self) -> Span:
        return self.arguments[4]


def nears(reading: Reading, new: dict[int, Dataset], outer: Collection[int]) -> list[Near]:
    """All calls of near. In the SELECTs whose numbers are in ``outer`` parameters come from outside."""
    found: list[Near] = []
    for call in reading.body.calls("NEAR"):
        taken = {near.cells.exploded.key for near in found if near.cells}
        found.append(_near(reading, call, f"__cell{len(found)}", new, taken, outer))
    return found


def _near(
    reading: Reading, call: int, column: str, new: dict[int, Dataset], taken: set[int], outer: Collection[int]
) -> Near:
    span, arguments = reading.body.call(call), reading.body.arguments(call)
    if len(arguments) != 5:
        raise reading.body.error(f"near takes five values, near(x1, y1, x2, y2, radius), not {len(arguments)}", call)
    scope = reading.body.scope(call)
    if scope is None:
        return Near(span, arguments, None)
    for conjunct, joined in reading.body.conditions(scope):
        blocked = reading.refers(arguments) and scope.number in outer
        if conjunct == span and not blocked and not scope.joins("RIGHT", "FULL"):
            return Near(span, arguments, _cells(reading, scope, joined, arguments, new, taken, column))
    return Near(span, arguments, None)


def _cells(
    reading: Reading,
    scope: Scope,
    joined: Item | None,
    arguments: list[Span],
    new: dict[int, Dataset],
    taken: set[int],
    column: str,
) -> Cells | None:
    first, second, radius = arguments[:2], arguments[2:4], arguments[4]
    widest = reading.only(scope, [radius])
    if widest is None and reading.aliases(scope, [radius]):
        return None
    able: list[Cells] = []
    for here, there in ((first, second), (second, first)):
        item = reading.only(scope, here)
        kept = joined is None or joined.inner or joined is item
        if item is None or not kept or item.key in taken or item.alias in reading.aliases(scope, [*there, radius]):
            continue
        able.append(Cells(column, scope, item, here, there, widest))
    return min(able, key=lambda cells: _size(reading, cells.exploded, new), default=None)


def _size(reading: Reading, item: Item, new: dict[int, Dataset]) -> int:
    """A guess at which relation is smaller: what is new before what was loaded before what grows."""
    dataset = reading.dataset(item)
    if item.key in new:
        return 0
    return 1 + _SMALLER_FIRST.index(dataset.kind) if dataset else 2

"""Where ``near`` becomes an equality of grid cells, and which relation is put into the cells around it.

That pays where ``near`` is a condition of a join: its two points come from different relations, or one from a relation
and one from outside (a parameter, the SELECT around a subquery). Anywhere else it stays a plain condition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tocsin.data.compiler.reading import BodyReading
from tocsin.data.compiler.scopes import Item, Scope, Span
from tocsin.schema.definitions import Dataset, DatasetKind

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


def nears(reading: BodyReading, new: Mapping[int, Dataset], outer: Collection[int]) -> list[Near]:
    """All calls of near. In the SELECTs whose numbers are in ``outer`` parameters come from outside."""
    planning = _Planning(reading, new, outer)
    return [planning.near(call) for call in reading.body.calls("NEAR")]


class _Planning:
    """Goes through the calls of near in turn; a relation is put into cells for one of them at most."""

    def __init__(self, reading: BodyReading, new: Mapping[int, Dataset], outer: Collection[int]) -> None:
        self._reading, self._body, self._new, self._outer = reading, reading.body, new, outer
        self._taken: list[int] = []

    def near(self, call: int) -> Near:
        span, arguments = self._body.call(call), self._body.arguments(call)
        if len(arguments) != 5:
            raise self._body.error(f"near takes five values, near(x1, y1, x2, y2, radius), not {len(arguments)}", call)
        cells = self._cells(span, arguments)
        if cells is not None:
            self._taken.append(cells.exploded.key)
        return Near(span, arguments, cells)

    def _cells(self, call: Span, arguments: list[Span]) -> Cells | None:
        scope = self._body.scope(call.first)
        if scope is None or scope.joins("RIGHT", "FULL"):
            return None
        if self._reading.refers(arguments) and scope.number in self._outer:
            return None
        radius = arguments[4]
        widest = self._reading.only(scope, [radius])
        if widest is None and self._reading.aliases(scope, [radius]):
            return None
        column = f"__cell{len(self._taken)}"
        able = [
            Cells(column, scope, item, here, there, widest)
            for here, there in ((arguments[:2], arguments[2:4]), (arguments[2:4], arguments[:2]))
            if (item := self._explode(scope, call, here, [*there, radius]))
        ]
        return min(able, key=lambda cells: self._cost(cells, radius), default=None)

    def _explode(self, scope: Scope, call: Span, here: list[Span], rest: list[Span]) -> Item | None:
        """The relation of the point ``here``, if it can be put into several cells without a row coming twice."""
        item = self._reading.only(scope, here)
        if item is None or item.key in self._taken or item.alias in self._reading.aliases(scope, rest):
            return None
        for conjunct, joined in self._body.conditions(scope):
            if conjunct == call and (joined is None or joined.inner or joined is item):
                return item
        return None

    def _cost(self, cells: Cells, radius: Span) -> tuple[bool, int]:
        """Cheapest: what is new, before what was loaded, before what grows.

        But where the radius is a parameter, a relation that gives one row for a subscription is to be joined with it
        first, and looked for in the cells of the other.
        """
        item, dataset = cells.exploded, self._reading.dataset(cells.exploded)
        first = self._reading.refers([radius]) and self._reading.looked_up(cells.scope, item)
        if item.key in self._new:
            return first, 0
        return first, 1 + _SMALLER_FIRST.index(dataset.kind) if dataset else 2

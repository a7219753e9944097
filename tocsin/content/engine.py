"""Matching: which filters a publication fulfils, without looking at each of them.

A filter is a set of boxes that do not meet. A box is found in two steps: by the values that it asks for exactly
(``class = 'STOCK'``, ``symbol = 'YHOO'``), which are looked up together, and by its bounds, in a :class:`BoxTable` of
boxes of the same shape. A publication meets only the tables whose attributes it has, so that what others subscribe to
costs it nothing. Which tables these are is kept for publications with the same attributes, as most have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from functools import lru_cache
from math import inf, nextafter
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np

from tocsin.content.constraint import FIRST, LAST, START, Cut, Piece
from tocsin.content.filter import Box, Filter
from tocsin.content.lines import StringLine
from tocsin.content.table import NOTHING, BoxTable, Exact, Int64s, Shape, Side, Slot
from tocsin.content.values import Publication, Value, ValueKind, kind_of
from tocsin.errors import ConflictError, NotFoundError

MOST_EXACT: Final = 3
"""Values that are looked up together; with more, a publication could meet too many shapes. Others become bounds."""

_MOST_ROUTES: Final = 1000
# So many that few slots share one; were there one for each slot, masks would grow with the names that others use.
_BITS: Final = 256
# So few filters are compared sooner than looked up; and so many, to find one that covers, before all are looked up.
_FEW: Final = 4
_MANY: Final = 16

Form = tuple[str | type, ...]
"""What publications are alike in: the names of their attributes, then the types of their values."""


class _Stop(NamedTuple):
    """A table, and where a publication has what it looks at: exact values, and for each side a name and a sign."""

    table: BoxTable
    exact: Callable[[Publication], Exact]
    sides: tuple[tuple[str, float], ...]


class _Route(NamedTuple):
    """The tables that publications of one form meet, and which of their strings are compared by order."""

    stops: list[_Stop]
    ordered: frozenset[str]


class _Need(NamedTuple):
    """The slots that a table needs, and a mask of them: who lacks a bit of it lacks a slot."""

    mask: int
    slots: frozenset[Slot]


class _End(NamedTuple):
    """Where a piece ends, in one direction: its outermost value, the value that its cut is at, and whether that is left
    out. By the outermost values alone ``> 1`` and ``>= 1.0000000000000002`` would be the same."""

    bound: float
    value: float
    is_open: bool


class Engine:
    """Filters by numbers of the caller's choice, and what matches them.

    What can go wrong: a number is given twice (:class:`ConflictError`), or is not known (:class:`NotFoundError`).
    Publications must have been checked (:func:`tocsin.content.values.check_publication`).
    """

    def __init__(self) -> None:
        self._filters: dict[int, Filter] = {}
        self._tables: dict[Shape, BoxTable] = {}
        # Each table is kept with the slot that the fewest others have: what no publication has hides all that need it.
        self._by_slot: dict[Slot | None, dict[BoxTable, None]] = {}
        self._kept: dict[Shape, Slot | None] = {}
        self._uses: Counter[Slot] = Counter()
        # A bit for each slot that a table has, which it shares with some others, and all bits of a table.
        self._bits: dict[Slot, int] = {}
        self._last_bit = 0
        self._needs: dict[BoxTable, _Need] = {}
        self._lines: dict[str, StringLine] = {}
        self._routes: dict[Form, _Route] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, number: int, filter: Filter) -> None:
        """Matches one more filter."""
        if number in self._filters:
            raise ConflictError(f"there is a filter {number} already: {self._filters[number]}")
        self._filters[number] = filter
        for exact, bounded in map(_divide, filter.boxes()):
            self._hold(bounded)
            sides, bounds = self._bounds(bounded)
            table = self._table(Shape(tuple(slot for slot, _ in exact), sides))
            table.add(number, _values(exact), bounds)

    def remove(self, number: int) -> None:
        """Matches one less."""
        filter = self._filters.pop(number, None)
        if filter is None:
            raise NotFoundError(f"there is no filter {number}")
        held: dict[tuple[Shape, Exact], None] = {}
        for exact, bounded in map(_divide, filter.boxes()):
            shape = Shape(tuple(slot for slot, _ in exact), self._bounds(bounded)[0])
            held[shape, _values(exact)] = None
        for shape, values in held:
            self._tables[shape].remove(number, values)
        for _, bounded in map(_divide, filter.boxes()):
            self._release(bounded)
        for shape in dict.fromkeys(shape for shape, _ in held):
            if not self._tables[shape]:
                self._drop(shape)

    def match(self, publication: Publication) -> Int64s:
        """The numbers of all filters that a publication fulfils, in no order."""
        found = [part for parts in self._find(publication) for part in parts]
        return np.concatenate(found) if found else NOTHING

    def matching(self, publication: Publication) -> list[Filter]:
        """These filters themselves."""
        return list(map(self._filters.__getitem__, self.match(publication).tolist()))

    def matches_any(self, publication: Publication) -> bool:
        """Whether there are any."""
        return any(len(part) for parts in self._find(publication) for part in parts)

    def covering(self, filter: Filter) -> Int64s:
        """The numbers of all filters that cover this one, itself included if it is there, rising.

        A box that lies within another one is right of all its bounds, as a publication in it is, and where it leaves a
        value out that the other one has as a bound, of that value as well. Of several boxes each must lie within one of
        the same filter; few filters are around all of the first ones, and are asked themselves.
        """
        boxes = filter.boxes()
        found = self._around(next(boxes))
        for box in boxes:
            if len(found) <= _FEW:
                covers = [self._filters[number].covers(filter) for number in found.tolist()]
                return np.sort(found[np.array(covers, bool)])
            found = found[np.isin(found, self._around(box))]
        return np.sort(found)

    def coverer(self, filter: Filter, *but: int) -> int | None:
        """The number of any filter that covers this one, other than certain few; None if there is none."""
        boxes = filter.boxes()
        first, several = next(boxes), next(boxes, None) is not None
        compared = 0
        for part in self._parts_around(first):
            for number in part[: _MANY if several else len(but) + 1].tolist():
                if number not in but and (not several or self._filters[number].covers(filter)):
                    return int(number)
            compared += len(part)
            if several and compared > _MANY:
                return next((number for number in self.covering(filter).tolist() if number not in but), None)
        return None

    def _around(self, box: Box) -> Int64s:
        """The filters of which one box contains this one. It is one box at most, as those of a filter do not meet."""
        found = list(self._parts_around(box))
        return np.concatenate(found) if found else NOTHING

    def _parts_around(self, box: Box) -> Iterator[Int64s]:
        """These, table by table."""
        points: dict[Slot, Value] = {}
        corners: dict[Side, _End] = {}
        for name, kind, piece in box:
            points[name, None] = True
            if piece is not None:
                if piece.is_point:
                    points[name, kind] = piece.low[1]
                corners[(name, kind), 1.0], corners[(name, kind), -1.0] = self._ends(name, kind, piece)
        # In an order that is the same in every process, as what is found first may be all that is looked for.
        for table in self._within(dict.fromkeys([*points, *(slot for slot, _ in corners)]).keys()):
            if all(slot in points for slot in table.shape.exact):
                exact = tuple([points[slot] for slot in table.shape.asked])
                yield from table.match(exact, _marks([corners[side] for side in table.shape.sides]))

    def _within(self, have: Set[Slot]) -> Iterator[BoxTable]:
        """The tables that need no other slots than these."""
        lacking, needs = ~self._mask(have), self._needs
        for slot in (None, *have):
            for table in self._by_slot.get(slot, ()):
                need = needs[table]
                if not need.mask & lacking and have >= need.slots:
                    yield table

    def _find(self, publication: Publication) -> Iterator[list[Int64s]]:
        """The numbers of those that a publication fulfils, in parts, table by table."""
        form: Form = (*publication, *map(type, publication.values()))
        stops, ordered = self._routes.get(form) or self._route(form, publication)
        places: Any = publication
        if ordered:
            places = dict(publication) | {name: self._lines[name].place(str(publication[name])) for name in ordered}
        for table, exact, sides in stops:
            yield table.match(exact(publication), [sign * places[name] for name, sign in sides])

    def _route(self, form: Form, publication: Publication) -> _Route:
        """The route of a publication's form, which is kept until there are other tables."""
        kinds: list[Slot] = [(name, kind_of(value)) for name, value in publication.items()]
        tables = list(self._within(dict.fromkeys([*kinds, *((name, None) for name in publication)]).keys()))
        sides = {slot for table in tables for slot, _ in table.shape.sides}
        ordered = frozenset(name for name, kind in sides if kind is ValueKind.STRING)
        if len(self._routes) >= _MOST_ROUTES:
            self._routes.clear()
        route = self._routes[form] = _Route(list(map(_stop, tables)), ordered)
        return route

    def _table(self, shape: Shape) -> BoxTable:
        if shape not in self._tables:
            table = self._tables[shape] = BoxTable(shape)
            rarest = self._kept[shape] = min(shape.slots, key=lambda slot: self._uses[slot], default=None)
            self._by_slot.setdefault(rarest, {})[table] = None
            for slot in shape.slots:
                if slot not in self._bits:
                    self._last_bit = (self._last_bit + 1) % _BITS
                    self._bits[slot] = 1 << self._last_bit
            self._needs[table] = _Need(self._mask(shape.slots), frozenset(shape.slots))
            self._uses.update(shape.slots)
            self._routes.clear()
        return self._tables[shape]

    def _drop(self, shape: Shape) -> None:
        rarest, table = self._kept.pop(shape), self._tables.pop(shape)
        del self._by_slot[rarest][table], self._needs[table]
        if not self._by_slot[rarest]:
            del self._by_slot[rarest]
        self._uses.subtract(shape.slots)
        for slot in shape.slots:
            if not self._uses[slot]:
                del self._uses[slot], self._bits[slot]
                if slot[1] is ValueKind.STRING:
                    self._lines.pop(slot[0], None)
        self._routes.clear()

    def _mask(self, slots: Iterable[Slot]) -> int:
        mask = 0
        for slot in slots:
            mask |= self._bits.get(slot, 0)
        return mask

    def _bounds(self, bounded: Box) -> tuple[tuple[Side, ...], list[float]]:
        """A box without its exact values, as half-spaces. One that bounds nothing stands for the kind of the value."""
        sides: dict[Side, _End] = {}
        for name, kind, piece in bounded:
            assert piece is not None
            low, high = self._ends(name, kind, piece)
            if low.bound > -np.inf or high.bound == -np.inf:
                sides[(name, kind), 1.0] = low
            if high.bound > -np.inf:
                sides[(name, kind), -1.0] = high
        return tuple(sides), [*(end.bound for end in sides.values()), *(end.value for end in sides.values())]

    def _ends(self, name: str, kind: ValueKind | None, piece: Piece) -> tuple[_End, _End]:
        """The lower end of a piece, and the upper one by negative values; where it has no end, they are -∞."""
        if kind is ValueKind.STRING:
            # Between the numbers of two strings there is room, so that one of them tells what is covered.
            line = self._lines.get(name, _NO_LINE)
            return _End(line.low(piece.low), -np.inf, False), _End(-line.high(piece.high), -np.inf, False)
        return _number_ends(piece)

    def _hold(self, bounded: Box) -> None:
        """Gives the strings of a box's bounds their place in line."""
        for name in (name for name, kind, _ in bounded if kind is ValueKind.STRING):
            self._lines.setdefault(name, StringLine())
        for name, string in _strings(bounded):
            renumbered = self._lines[name].hold(string)
            if renumbered is not None:
                for table in self._tables.values():
                    table.renumber((name, ValueKind.STRING), *renumbered)

    def _release(self, bounded: Box) -> None:
        for name, string in _strings(bounded):
            self._lines[name].release(string)


_NO_LINE: Final = StringLine()


def _divide(box: Box) -> tuple[list[tuple[Slot, Value]], Box]:
    """What a box asks for exactly, and what it bounds."""
    exact: list[tuple[Slot, Value]] = []
    bounded: list[tuple[str, ValueKind | None, Piece | None]] = []
    for name, kind, piece in box:
        if piece is None:
            exact.append(((name, None), True))
        elif piece.is_point and len(exact) < MOST_EXACT:
            exact.append(((name, kind), piece.low[1]))
        else:
            bounded.append((name, kind, piece))
    return exact, tuple(bounded)


def _values(exact: list[tuple[Slot, Value]]) -> Exact:
    """The values among them; that an attribute must only be there is none."""
    return tuple([value for (_, kind), value in exact if kind is not None])


def _stop(table: BoxTable) -> _Stop:
    names = [name for name, _ in table.shape.asked]
    sides = tuple((name, sign) for (name, _), sign in table.shape.sides)
    # Of less than two values itemgetter makes no tuple.
    exact = itemgetter(*names) if len(names) > 1 else lambda publication: tuple([publication[name] for name in names])
    return _Stop(table, exact, sides)


def _strings(bounded: Box) -> Iterator[tuple[str, str]]:
    for name, kind, piece in bounded:
        for cut in piece or ():
            if kind is ValueKind.STRING and cut not in (START, LAST):
                yield name, cut[1]


def _marks(ends: list[_End]) -> list[float]:
    """What bounds are compared with, and after that the values that they are at, where these matter."""
    return [*(end.bound for end in ends), *(end.value if end.is_open else np.inf for end in ends)]


@lru_cache(maxsize=1024)
def _number_ends(piece: Piece) -> tuple[_End, _End]:
    """The boxes of a filter have the same few pieces."""
    return _low(piece.low), _high(piece.high)


def _low(cut: Cut) -> _End:
    """What is right of a cut in a line of numbers."""
    if cut == FIRST:
        return _UNBOUNDED
    value = float(cut[1])
    return _End(nextafter(value, inf), value, True) if cut[2] else _End(value, value, False)


def _high(cut: Cut) -> _End:
    """What is left of it, by negative values."""
    if cut == LAST:
        return _UNBOUNDED
    value = -float(cut[1])
    return _End(value, value, False) if cut[2] else _End(nextafter(value, inf), value, True)


_UNBOUNDED: Final = _End(-np.inf, -np.inf, False)

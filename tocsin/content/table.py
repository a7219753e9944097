"""Boxes of one shape, matched all at once.

A box asks for some values exactly, and bounds others: each bound is a half-space, ``bound ≤ sign × value of a slot``. A
table holds the boxes that ask for exact values of the same slots, and are bounded in the same slots and directions. Its
rows are in the order of the exact values, then of the first bound, so that those of one publication's exact values are
neighbours, and among them those whose first bound holds come first.

After its bounds a row has the values that they are at, such as 1 for what is greater than 1. They are for whoever asks
which boxes lie around another one: two boxes that no publication tells apart need not lie within each other.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tocsin.content.lines import Floats, renumber
from tocsin.content.values import Value, ValueKind

Int64s = npt.NDArray[np.int64]

Slot = tuple[str, ValueKind | None]
"""An attribute and the kind of its value; without a kind, the attribute whatever its value."""
Side = tuple[Slot, float]
"""A slot and the direction in which it is bounded: 1.0 from below, -1.0 from above."""
Exact = tuple[Value, ...]
"""The exact values, in the order of the table's slots; of those without a kind there are none."""

NOTHING: Final[Int64s] = np.empty(0, np.int64)
_FEW: Final = 512


@dataclass(frozen=True)
class Shape:
    """What the boxes of a table have in common."""

    exact: tuple[Slot, ...]
    sides: tuple[Side, ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All that a publication must have."""
        return tuple(dict.fromkeys([*self.exact, *(slot for slot, _ in self.sides)]))

    @property
    def asked(self) -> tuple[Slot, ...]:
        """The slots of the exact values."""
        return tuple(slot for slot in self.exact if slot[1] is not None)


class _Rows:
    """Sorted rows: the number of the exact values, bounds and the values they are at, and the number of the filter, or
    -1 once it is gone."""

    def __init__(self, sides: int) -> None:
        self.keys: Int64s = NOTHING
        self.numbers: Int64s = NOTHING
        self.bounds: Floats = np.empty((2 * sides, 0))
        self.gone = 0

    def __len__(self) -> int:
        return len(self.keys)

    def merge(self, keys: Int64s, numbers: Int64s, bounds: Floats) -> None:
        """Sorts more rows in, and leaves out those that are gone."""
        keys = np.concatenate([self.keys, keys])
        numbers = np.concatenate([self.numbers, numbers])
        bounds = np.concatenate([self.bounds, bounds], axis=1)
        first = bounds[0] if len(bounds) else numbers
        order = np.lexsort((first, keys))
        order = order[numbers[order] >= 0]
        self.keys, self.numbers, self.bounds, self.gone = keys[order], numbers[order], bounds[:, order], 0

    def remove(self, key: int, number: int) -> int:
        """Marks the rows of a filter as gone; how many there were."""
        low, high = self.keys.searchsorted([key, key + 1])
        at = low + np.flatnonzero(self.numbers[low:high] == number)
        self.numbers[at] = -1
        self.gone += len(at)
        return len(at)

    def group(self, key: int) -> _Group:
        """Those of the same exact values, until rows are merged."""
        low, high = self.keys.searchsorted((key, key + 1)).tolist()
        first, *others = [row[low:high] for row in self.bounds] or [NOTHING]
        return _Group(self, self.numbers[low:high], memoryview(first), others)


class _Group(NamedTuple):
    """Rows of the same exact values, as parts of the arrays; the first bounds rise."""

    rows: _Rows
    numbers: Int64s
    first: memoryview
    others: list[Floats]

    def match(self, marks: list[float]) -> Int64s:
        """The filters whose bounds these marks are within: one for each side, or two, the second for the value."""
        found = self.numbers[: bisect_right(self.first, marks[0])] if marks else self.numbers
        inside: Any = found >= 0 if self.rows.gone else None
        for bounds, mark in zip(self.others, marks[1:], strict=False):
            within = bounds[: len(found)] <= mark
            inside = within if inside is None else inside & within
        return found if inside is None else found[inside]


class BoxTable:
    """Boxes of one shape. Most rows are in a large sorted part; those that came lately are in a small one, and what
    came since the last publication waits unsorted."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._large, self._small = _Rows(len(shape.sides)), _Rows(len(shape.sides))
        self._waiting: dict[int, list[tuple[int, list[float]]]] = {}
        self._keys: dict[Exact, tuple[int, int]] = {}
        # Of the keys that were looked up since rows were merged last.
        self._groups: dict[Exact, list[_Group]] = {}
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, number: int, exact: Exact, bounds: list[float]) -> None:
        """A box of the filter with this number, by its bounds and the values they are at; it may have several boxes,
        which do not meet."""
        key, uses = self._keys.get(exact, (self._next, 0))
        self._next += not uses
        self._keys[exact] = key, uses + 1
        self._waiting.setdefault(number, []).append((key, bounds))

    def remove(self, number: int, exact: Exact) -> None:
        """Forgets the boxes of a filter that ask for these exact values."""
        self._settle()
        key, uses = self._keys[exact]
        uses -= self._small.remove(key, number) + self._large.remove(key, number)
        if uses:
            self._keys[exact] = key, uses
        else:
            del self._keys[exact]
            self._groups.pop(exact, None)
        if self._large.gone > _FEW + len(self._large) // 8:
            self._pack()

    def renumber(self, slot: Slot, before: Floats, after: Floats) -> None:
        """The values of a slot have other numbers now, in the same order."""
        self._settle()
        # Rows that are gone may be bounded by strings that have no number any more.
        self._pack()
        bounds = self._large.bounds
        for row, (mine, sign) in enumerate(self.shape.sides):
            if mine == slot:
                bounds[row] = sign * renumber(sign * bounds[row], before, after)

    def match(self, exact: Exact, marks: list[float]) -> list[Int64s]:
        """The filters with a box of these exact values whose bounds are at most these marks, in parts."""
        if self._waiting:
            self._settle()
        return [group.match(marks) for group in self._groups.get(exact) or self._look_up(exact)]

    def _look_up(self, exact: Exact) -> list[_Group]:
        if exact not in self._keys:
            return []
        groups = [rows.group(self._keys[exact][0]) for rows in (self._large, self._small)]
        kept = self._groups[exact] = [group for group in groups if len(group.numbers)]
        return kept

    def _settle(self) -> None:
        if not self._waiting:
            return
        rows = [(key, number, bounds) for number, boxes in self._waiting.items() for key, bounds in boxes]
        self._waiting.clear()
        bounds = np.array([bounds for _, _, bounds in rows]).reshape(len(rows), 2 * len(self.shape.sides)).T
        self._small.merge(_column(row[0] for row in rows), _column(row[1] for row in rows), bounds)
        self._groups.clear()
        if len(self._small) > _FEW + len(self._large) // 64:
            self._pack()

    def _pack(self) -> None:
        self._large.merge(self._small.keys, self._small.numbers, self._small.bounds)
        self._small = _Rows(len(self.shape.sides))
        self._groups.clear()


def _column(numbers: Any) -> Int64s:
    return np.array(list(numbers), np.int64)

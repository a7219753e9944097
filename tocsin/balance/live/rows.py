"""Rows of numbers that grow and shrink, in one pool.

A row is a stretch of the pool with some room to spare. A row that needs more moves to the pool's end, and what it
leaves behind is waste until the rows are packed again: when the end is reached, or when half of the pool is waste.
"""

from __future__ import annotations

import numpy as np

from tocsin.balance.compiled import compiled
from tocsin.balance.live.numbering import grow
from tocsin.balance.model.workload import Bools, Int32s, Int64s

_SMALL = 1024  # below this, packing is not worth it


class RowPool:
    """Rows of numbers by their index; a row that nobody has filled is empty.

    Args:
        indptr: where each row begins in ``values``, and where the last one ends.
    """

    def __init__(self, indptr: Int64s, values: Int32s) -> None:
        self.start = indptr[:-1].copy()
        self.length = np.diff(indptr).astype(np.int32)
        self.room = self.length.copy()
        self.pool = values.copy()
        self.top = len(values)
        self.kept = len(values)

    def __getitem__(self, row: int) -> Int32s:
        start = self.start[row]
        return self.pool[start : start + self.length[row]]

    @property
    def waste(self) -> int:
        """How much of the pool belongs to no row."""
        return self.top - self.kept

    def extend_to(self, rows: int) -> None:
        """Makes sure that there are so many rows."""
        self.start, self.length, self.room = (
            grow(self.start, rows),
            grow(self.length, rows),
            grow(self.room, rows),
        )

    def append(self, rows: Int64s, values: Int32s) -> None:
        """Appends ``values[n]`` to row ``rows[n]``, for every n."""
        touched, more = np.unique(rows, return_counts=True)
        self._reserve(touched, more)
        append_values(self.start, self.length, self.pool, rows, values)
        self._tidy()

    def remove(self, rows: Int64s, values: Int32s) -> None:
        """Removes ``values[n]``, which is there, from row ``rows[n]``, for every n. The order within a row changes."""
        self.kept -= int(remove_values(self.start, self.length, self.room, self.pool, rows, values))
        self._tidy()

    def clear(self, row: int) -> None:
        """Empties a row."""
        self.kept -= int(self.room[row])
        self.length[row] = self.room[row] = 0
        self._tidy()

    def holding(self, rows: Int64s, values: Int32s) -> Bools:
        """Whether row ``rows[n]`` holds ``values[n]``, for every n."""
        return find_values(self.start, self.length, self.pool, rows, values)

    def gather(self, rows: Int64s, names: Int32s) -> tuple[Int64s, Int32s]:
        """These rows one after the other: where each begins, and all their values, renamed."""
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.length[rows], dtype=np.int64)])
        return indptr, rename_values(self.start, self.pool, rows, indptr, names)

    def _reserve(self, rows: Int64s, more: Int64s) -> None:
        wanted = roomy(self.length[rows] + more)
        wanted[self.length[rows] + more <= self.room[rows]] = 0
        need = int(wanted.sum())
        if self.top + need > len(self.pool):
            self._pack(need)
        self.kept += need - int(self.room[rows][wanted > 0].sum())
        self.top = int(widen_rows(self.start, self.length, self.room, self.pool, self.top, rows, wanted))

    def _tidy(self) -> None:
        if self.waste > _SMALL and 2 * self.waste > self.top:
            self._pack(0)

    def _pack(self, more: int) -> None:
        """Moves all rows into a new pool that has room for so much more."""
        size = self.kept + more
        pool = np.empty(size + size // 2, np.int32)
        self.top = int(pack_rows(self.start, self.length, self.room, self.pool, pool))
        self.pool = pool


def roomy(length: Int64s) -> Int64s:
    """How much room rows of these lengths are given."""
    return np.asarray(length + length // 2 + 2, np.int64)


@compiled
def widen_rows(
    start: Int64s, length: Int32s, room: Int32s, pool: Int32s, top: int, rows: Int64s, wanted: Int64s
) -> int:
    """Moves rows to the pool's end, with the room they want; 0 stays. The new top."""
    for at in range(len(rows)):
        if wanted[at] == 0:
            continue
        row = rows[at]
        pool[top : top + length[row]] = pool[start[row] : start[row] + length[row]]
        start[row] = top
        room[row] = wanted[at]
        top += wanted[at]
    return top


@compiled
def append_values(start: Int64s, length: Int32s, pool: Int32s, rows: Int64s, values: Int32s) -> None:
    """Appends to rows that have room."""
    for at in range(len(rows)):
        row = rows[at]
        pool[start[row] + length[row]] = values[at]
        length[row] += 1


@compiled
def remove_values(start: Int64s, length: Int32s, room: Int32s, pool: Int32s, rows: Int64s, values: Int32s) -> int:
    """Removes; how much room was given up, by rows that have far more than they need."""
    left = 0
    for at in range(len(rows)):
        row = rows[at]
        last = start[row] + length[row] - 1
        for place in range(start[row], last):
            if pool[place] == values[at]:
                pool[place] = pool[last]
                break
        length[row] -= 1
        enough = length[row] + length[row] // 2 + 2
        if room[row] > 2 * enough:
            left += room[row] - enough
            room[row] = enough
    return left


@compiled
def find_values(start: Int64s, length: Int32s, pool: Int32s, rows: Int64s, values: Int32s) -> Bools:
    """Whether each row holds its value."""
    holds = np.zeros(len(rows), np.bool_)
    for at in range(len(rows)):
        row = rows[at]
        for place in range(start[row], start[row] + length[row]):
            if pool[place] == values[at]:
                holds[at] = True
                break
    return holds


@compiled
def pack_rows(start: Int64s, length: Int32s, room: Int32s, pool: Int32s, fresh: Int32s) -> int:
    """Copies every row with its room into a fresh pool; its top."""
    top = 0
    for row in range(len(start)):
        fresh[top : top + length[row]] = pool[start[row] : start[row] + length[row]]
        start[row] = top
        top += room[row]
    return top


@compiled
def rename_values(start: Int64s, pool: Int32s, rows: Int64s, indptr: Int64s, names: Int32s) -> Int32s:
    """The values of rows one after the other, by their new names."""
    values = np.empty(indptr[-1], np.int32)
    for at in range(len(rows)):
        begin = start[rows[at]] - indptr[at]
        for place in range(indptr[at], indptr[at + 1]):
            values[place] = names[pool[begin + place]]
    return values

"""A pull: results of a span of executions in order, a part at a time, so that they are never in memory as a whole.

First only the numbers and sizes are looked at. They say how far the pull goes within its bound of bytes, and where the
parts begin and end; then the payloads of each part are read by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw

from tocsin.model.messages import Pulled, Result
from tocsin.model.parts import parts, with_more

PART_BYTES: Final = 1 << 20
"""A part has about so many bytes of payload, unless a single result has more."""
COLUMNS: Final = ["execution", "be", "rows", "bytes", "payload"]
SIZES: Final = ["execution", "be", "bytes"]
# What a result takes in a message beyond its payload.
_OVERHEAD: Final = 100
# So many executions are looked at first, then twice as many each time: in a long span there may be very many results.
_SPAN: Final = 64

Ints = npt.NDArray[np.int64]
Read = Callable[[int, int, list[str], Ints | None], pa.Table]
"""Reads columns of executions from ``first`` to ``last``, of these BE subscriptions or of all, in any order."""


class Index:
    """Which results there are, in order, and what they weigh; as far as ``most`` bytes go, but one execution whole."""

    def __init__(self, rows: pa.Table, last: int, most: int | None) -> None:
        execution, be, size = (rows[name].to_numpy().astype(np.int64) for name in SIZES)
        order = np.lexsort((be, execution))
        self._execution, self._be = execution[order], be[order]
        self._weight = np.cumsum(size[order] + _OVERHEAD)
        self.upto = last
        if most is not None and len(order) and self._weight[-1] > most:
            self.upto = int(self._execution[np.searchsorted(self._weight, most)])
            end = int(np.searchsorted(self._execution, self.upto, side="right"))
            self._execution, self._be, self._weight = self._execution[:end], self._be[:end], self._weight[:end]
            self.upto = last if end == len(order) else self.upto

    def parts(self) -> list[tuple[Ints, Ints]]:
        """The executions and BE subscriptions of each part."""
        piece = (self._weight - 1) // PART_BYTES
        starts = np.flatnonzero(np.diff(piece)) + 1
        return list(zip(np.split(self._execution, starts), np.split(self._be, starts), strict=True))


def pull(
    read: Read,
    first: int,
    last: int,
    newest: int,
    wanted: Ints | None,
    most: int | None,
    oldest: int,
    gone: dict[int, int],
) -> Iterator[Pulled]:
    """The parts of a pull, at least one; each is read when it is asked for. There is nothing after ``newest``."""
    end = min(last, newest)
    rows, reached = _sizes(read, first, end, wanted, most)
    index = Index(rows, last if reached >= end else reached, most)
    *many, few = into_parts(gone.items())
    for some in many:
        yield Pulled([], True, index.upto, oldest, dict(some))
    pieces = index.parts()
    for number, (execution, be) in enumerate(pieces, 1):
        results = _results(_part(read, execution, be)) if len(be) else []
        yield Pulled(results, number < len(pieces), index.upto, oldest, dict(few) if number == 1 else {})


def _sizes(read: Read, first: int, last: int, wanted: Ints | None, most: int | None) -> tuple[pa.Table, int]:
    """Which results there are, up to an execution with which they are more than ``most`` bytes; and that execution."""
    if most is None:
        return read(first, last, SIZES, wanted), last
    found, end, span = list[pa.Table](), first - 1, _SPAN
    while not found or (end < last and _bytes(found) <= most):
        begin, end, span = end + 1, min(last, end + span), 2 * span
        found.append(read(begin, end, SIZES, wanted))
    return pa.concat_tables(found), end


def _bytes(found: list[pa.Table]) -> int:
    return sum(int(pc.sum(rows["bytes"]).as_py() or 0) + _OVERHEAD * rows.num_rows for rows in found)


def into_parts(gone: Collection[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """These in lists that fit into a part; an empty one when there are none."""
    return [part for part, _ in with_more(parts(gone, lambda _: _OVERHEAD, PART_BYTES))]


def _part(read: Read, execution: Ints, be: Ints) -> pa.Table:
    """The rows from the first to the last of these."""
    first, last = int(execution[0]), int(execution[-1])
    rows = read(first, last, COLUMNS, np.unique(be)).sort_by([("execution", "ascending"), ("be", "ascending")])
    number, subscription = rows["execution"], rows["be"]
    begun = pc.or_(pc.greater(number, first), pc.greater_equal(subscription, int(be[0])))
    over = pc.and_(pc.equal(number, last), pc.greater(subscription, int(be[-1])))
    return rows.filter(pc.and_not(begun, over))


def _results(rows: pa.Table) -> list[Result]:
    columns = [rows[name].to_pylist() for name in COLUMNS]
    return [
        Result(execution, be, count, size, Raw(payload.encode()))
        for execution, be, count, size, payload in zip(*columns, strict=True)
    ]

"""Sets of ids as sorted arrays: eight bytes an id, and a million met with a million in some hundredths of a second."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tocsin.errors import InvalidError

IdArray: TypeAlias = npt.NDArray[np.int64]
NONE: Final[IdArray] = np.empty(0, np.int64)
NONE.flags.writeable = False

_FEWEST_WAITING: Final = 4096


def ascending(ids: Iterable[int]) -> IdArray:
    """The ids in order, each once; refused when one cannot be an id."""
    found = _array(ids)
    return found if len(found) < 2 or bool(np.all(found[1:] > found[:-1])) else np.unique(found)


def among(ids: IdArray, others: IdArray) -> npt.NDArray[np.bool_]:
    """For each of the ids, in any order, whether it is one of ``others``, which are ascending."""
    return look_up(ids, others)[0]


def look_up(ids: IdArray, others: IdArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """The same, and for those that are, in which place."""
    if not len(others):
        return np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.intp)
    places = np.searchsorted(others, ids)
    places[places == len(others)] = 0
    return np.equal(others[places], ids), places


def common(left: IdArray, right: IdArray) -> IdArray:
    """The ids in both of two ascending arrays."""
    few, many = (left, right) if len(left) <= len(right) else (right, left)
    return few[among(few, many)]


def without(ids: IdArray, others: IdArray) -> IdArray:
    """The ids that are not among ``others``; both ascending."""
    if len(others) > len(ids):
        return ids[~among(ids, others)]
    return np.delete(ids, np.searchsorted(ids, common(ids, others)))


def together(ids: IdArray, others: IdArray) -> IdArray:
    """The ids in either of two ascending arrays."""
    new = without(others, ids)
    return np.insert(ids, np.searchsorted(ids, new), new)


def _array(ids: Iterable[int]) -> IdArray:
    try:
        if isinstance(ids, np.ndarray):
            return ids.astype(np.int64, casting="safe", copy=False) if len(ids) else NONE
        # Unlike NumPy, this takes neither text nor fractions for whole numbers.
        return np.frombuffer(array("q", ids), np.int64)
    except (OverflowError, TypeError):
        raise InvalidError("subscription ids are whole numbers of at most 64 bits") from None


class Ids:
    """A changing set of ids. A change costs what is changed; the next look at the whole puts it in its place."""

    def __init__(self, ids: IdArray = NONE) -> None:
        self._settled = ids
        self._changes: list[tuple[IdArray, bool]] = []
        self._waiting = 0

    def add(self, ids: IdArray) -> None:
        self._change(ids, True)

    def discard(self, ids: IdArray) -> None:
        self._change(ids, False)

    def array(self) -> IdArray:
        """All ids, ascending. The array is never changed afterwards."""
        if self._changes:
            self._settle()
        return self._settled

    def _change(self, ids: IdArray, present: bool) -> None:
        self._changes.append((ids, present))
        self._waiting += len(ids)
        if self._waiting > max(_FEWEST_WAITING, len(self._settled) // 8):
            self._settle()

    def _settle(self) -> None:
        # Newest first, so that unique, which finds the first of equals, finds what was last said about an id.
        ids = np.concatenate([ids for ids, _ in reversed(self._changes)])
        present = np.repeat(
            [present for _, present in reversed(self._changes)], [len(ids) for ids, _ in reversed(self._changes)]
        )
        changed, newest = np.unique(ids, return_index=True)
        self._settled = together(without(self._settled, changed), changed[present[newest]])
        self._changes.clear()
        self._waiting = 0

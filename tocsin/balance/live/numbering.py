"""Numbers for things that come and go: small, dense, and used again once they are free."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tocsin.balance.model.workload import Bools, Int64s
from tocsin.errors import InvalidError, NotFoundError

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Numbering:
    """Which numbers of one kind of thing are in use.

    Args:
        what: what the numbers stand for, in messages: "broker".
        number: how many are in use from the start: 0 to ``number`` − 1.
    """

    def __init__(self, what: str, number: int = 0) -> None:
        self.what = what
        self.used: Bools = np.ones(number, np.bool_)
        self.top = number
        self._free: list[int] = []
        self._numbers: Int64s | None = None

    def __len__(self) -> int:
        return self.top - len(self._free)

    def take(self) -> int:
        """A number that was not in use."""
        if self._free:
            number = self._free.pop()
        else:
            number, self.top = self.top, self.top + 1
            self.used = grow(self.used, self.top)
        self.used[number] = True
        self._numbers = None
        return number

    def release(self, number: int) -> None:
        """Makes a number free."""
        self.used[number] = False
        self._numbers = None
        self._free.append(number)

    def numbers(self) -> Int64s:
        """All numbers in use, rising: the same array, which is not to be written to, until they are others."""
        if self._numbers is None:
            self._numbers = np.flatnonzero(self.used[: self.top])
        return self._numbers

    def check(self, number: int) -> None:
        """Refuses a number that is not in use."""
        if not (0 <= number < self.top and self.used[number]):
            raise NotFoundError(f"there is no {self.what} {number}")

    def check_all(self, numbers: npt.ArrayLike) -> Int64s:
        """Numbers that came from outside, as an array; refuses what is not in use."""
        given = whole_numbers(numbers, self.what)
        inside = (given >= 0) & (given < self.top)
        known = inside & self.used[np.where(inside, given, 0)] if self.top else inside
        if not known.all():
            raise NotFoundError(f"there is no {self.what} {given[~known][0]}")
        return given


def whole_numbers(values: npt.ArrayLike, what: str) -> Int64s:
    """Values from outside as a row of whole numbers."""
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise InvalidError(f"{what}: whole numbers are expected, not {given.dtype}")
    return np.atleast_1d(given).astype(np.int64)


def grow(array: npt.NDArray[_Scalar], length: int, axis: int = 0) -> npt.NDArray[_Scalar]:
    """The array, or a longer one with zeros at its end; by so much longer that growing one by one stays cheap."""
    have = array.shape[axis]
    if have >= length:
        return array
    shape = list(array.shape)
    shape[axis] = max(length, have + have // 2 + 4)
    longer = np.zeros(shape, array.dtype)
    longer[tuple(slice(0, size) for size in array.shape)] = array
    return longer

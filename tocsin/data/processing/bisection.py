"""Which records of a batch a function cannot take: found by halving what it fails on, in a bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tocsin.data.processing.contract import FunctionFaultError

_TIMES: Final = 6
_LEAST: Final = 0.25

T = TypeVar("T")


@dataclass(frozen=True)
class TriedPart(Generic[T]):
    """The records from ``first`` up to ``last``, with what the function gave for them, or else why it gave nothing."""

    first: int
    last: int
    given: T | None
    fault: str = ""


class Patience:
    """How long a function is borne with: ``seconds`` for a batch, and six times as long for all that goes wrong.

    While it is searched who is at fault, half of the records have half of the time, but never less than a quarter of
    all; nor have those have more that come when patience is at its end.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._seconds, self._left = seconds, _TIMES * seconds

    @property
    def exhausted(self) -> bool:
        """Whether nothing more is searched for."""
        return self._left <= 0

    @property
    def seconds(self) -> float:
        """What a whole batch may take."""
        return self.least if self.exhausted else self._seconds

    @property
    def least(self) -> float:
        """What a single record may take."""
        return _LEAST * self._seconds

    def spend(self, seconds: float) -> None:
        """Has borne with so much."""
        self._left -= seconds


def try_parts(first: int, last: int, run: Callable[[int, int, float], T], patience: Patience) -> Iterator[TriedPart[T]]:
    """All records from ``first`` up to ``last``, in order: each is in one part that the function took, or has a fault.

    Args:
        run: has the function take some of the records in so many seconds; raises FunctionFaultError.
    """
    yield from _try(first, last, run, patience, patience.seconds, searching=False)


def _try(
    first: int, last: int, run: Callable[[int, int, float], T], patience: Patience, seconds: float, searching: bool
) -> Iterator[TriedPart[T]]:
    begun = patience.clock()
    try:
        part = TriedPart(first, last, run(first, last, seconds))
    except FunctionFaultError as error:
        fault = str(error)
    else:
        patience.spend(patience.clock() - begun if searching else 0.0)
        yield part
        return
    patience.spend(patience.clock() - begun)
    if last - first == 1:
        yield TriedPart(first, last, None, fault)
    elif patience.exhausted:
        yield TriedPart(first, last, None, f"{fault}, with this record or another of {last - first}")
    else:
        middle, half = (first + last) // 2, max(seconds / 2, patience.least)
        yield from _try(first, middle, run, patience, half, searching=True)
        yield from _try(middle, last, run, patience, half, searching=True)

"""What a notification weighs: one figure for λ, for what brokers measure, and for simulations, so that they compare."""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

AROUND: Final = 40
"""The bytes around a payload, about: the names of a note's fields, its two numbers, and the comma before the next."""


class _Addable(Protocol):
    def __add__(self: _T, other: int, /) -> _T: ...


_T = TypeVar("_T", bound=_Addable)


def weight(payload: _T) -> _T:
    """The bytes that a notification counts in loads, by those of its payload; of many, in an array, each."""
    return payload + AROUND

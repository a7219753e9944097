"""Pieces of a line: what two constraints have in common, and what it takes to find out."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tocsin.content.constraint import Constraint, Piece, at_least, different_from, one_of, up_to

NUMBERS = st.integers(-6, 6).map(float)


class Counted(float):
    """A number that counts how often any is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return float(self) == other

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    __hash__ = float.__hash__


def without(numbers: list[float]) -> Constraint:
    """All numbers but these."""
    left: Constraint = up_to(8.0)
    for number in numbers:
        narrowed = left.narrow(different_from(number))
        assert narrowed
        left = narrowed
    return left


CONSTRAINTS = st.one_of(
    st.lists(NUMBERS, min_size=1).map(one_of), st.lists(NUMBERS).map(without), NUMBERS.map(at_least), NUMBERS.map(up_to)
)


@given(CONSTRAINTS, CONSTRAINTS)
def test_what_two_want_is_what_any_two_of_their_pieces_share(one: Constraint, other: Constraint) -> None:
    shared = (Piece(max(a.low, b.low), min(a.high, b.high)) for a in one.pieces for b in other.pieces)
    expected = tuple(sorted(piece for piece in shared if piece.low < piece.high))
    both = one.narrow(other)
    assert (both.pieces if both else ()) == expected
    assert one.meets(other) == bool(expected)
    within = all(any(a.low <= b.low and b.high <= a.high for a in one.pieces) for b in other.pieces)
    assert one.covers(other) == within


def test_long_lists_are_not_compared_each_with_each() -> None:
    even, odd = one_of(map(Counted, range(0, 128, 2))), one_of(map(Counted, range(1, 128, 2)))
    Counted.compared = 0
    assert not even.meets(odd)
    assert not even.covers(odd)
    assert even.covers(even)
    assert Counted.compared < 64 * 64

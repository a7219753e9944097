"""Which values of one attribute are wanted: pieces of a line.

Values of one kind lie on a line, and every condition on them is a set of disjoint pieces of it: ``= 5`` is a point,
``> 5`` all that is right of it, ``!= 5`` what is left and what is right of it, ``starts with 'YH'`` all from ``'YH'``
to just before ``'YI'``. A piece goes from one *cut* to another, and a cut lies just before or just after a value, so
that pieces need no open and closed ends. Then a conjunction is the intersection of pieces, and one condition covers
another if each of the other's pieces lies within one of its own.

The lines are taken to be dense: that there is no number between two neighbours in double precision is not made use of.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple

from tocsin.content.values import Value, ValueKind, kind_of

Cut = tuple[Any, ...]

FIRST: Final[Cut] = (-1,)
LAST: Final[Cut] = (1,)
_LAST_CHARACTER: Final = "\U0010ffff"
_LOW: Final = itemgetter(0)


def before(value: Value) -> Cut:
    """The cut just before a value."""
    return (0, value, 0)


def after(value: Value) -> Cut:
    """The cut just after a value."""
    return (0, value, 1)


START: Final[Cut] = before("")
"""Where the line of strings begins."""


class Piece(NamedTuple):
    """All values between two cuts, of which the first is the lower one."""

    low: Cut
    high: Cut

    @property
    def is_point(self) -> bool:
        """Whether it is one value."""
        return len(self.low) > 1 and self == _point(self.low[1])


@dataclass(frozen=True, slots=True)
class Constraint:
    """Values of one kind on rising pieces that do not touch; without a kind any value, as long as there is one."""

    kind: ValueKind | None = None
    pieces: tuple[Piece, ...] = ()

    def admits(self, value: Value) -> bool:
        """Whether this value is wanted."""
        if self.kind is None:
            return True
        if kind_of(value) is not self.kind:
            return False
        low, high = before(value), after(value)
        return any(piece.low <= low and high <= piece.high for piece in self.pieces)

    def covers(self, other: Constraint) -> bool:
        """Whether all is wanted that the other one wants."""
        if self.kind is None:
            return True
        if self.kind is not other.kind:
            return False
        mine = self.pieces
        if len(mine) == 1:
            # By far the most frequent case.
            return mine[0].low <= other.pieces[0].low and other.pieces[-1].high <= mine[0].high
        return all(_lies_within(each, mine) for each in other.pieces)

    def meets(self, other: Constraint) -> bool:
        """Whether some value is wanted by both."""
        if self.kind is None or other.kind is None:
            return True
        return self.kind is other.kind and next(_overlaps(self.pieces, other.pieces), None) is not None

    def narrow(self, other: Constraint) -> Constraint | None:
        """What both want; None when that is nothing."""
        if self.kind is None:
            return other
        if other.kind is None:
            return self
        pieces = tuple(_overlaps(self.pieces, other.pieces)) if self.kind is other.kind else ()
        return Constraint(self.kind, pieces) if pieces else None


def equal_to(value: Value) -> Constraint:
    """Just this value."""
    return Constraint(kind_of(value), (_point(value),))


def one_of(values: Iterable[Value]) -> Constraint:
    """Any of these values, which are of one kind."""
    ordered = sorted(set(values))
    return Constraint(kind_of(ordered[0]), _join_touching([_point(value) for value in ordered]))


def different_from(value: Value) -> Constraint:
    """Any other value of this one's kind."""
    if isinstance(value, bool):
        return equal_to(not value)
    outside = [Piece(_start(value), before(value)), Piece(after(value), LAST)]
    return Constraint(kind_of(value), tuple(piece for piece in outside if piece.low < piece.high))


def below(value: Value) -> Constraint | None:
    """Less than this; None when nothing is."""
    start = _start(value)
    return Constraint(kind_of(value), (Piece(start, before(value)),)) if start < before(value) else None


def up_to(value: Value) -> Constraint:
    """This or less."""
    return Constraint(kind_of(value), (Piece(_start(value), after(value)),))


def above(value: Value) -> Constraint:
    """More than this."""
    return Constraint(kind_of(value), (Piece(after(value), LAST),))


def at_least(value: Value) -> Constraint:
    """This or more."""
    return Constraint(kind_of(value), (Piece(before(value), LAST),))


def starting_with(prefix: str) -> Constraint:
    """Strings that begin so."""
    return Constraint(ValueKind.STRING, (Piece(before(prefix), after_prefix(prefix)),))


def after_prefix(prefix: str) -> Cut:
    """The cut behind all strings that begin so."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    return before(stem[:-1] + _next_character(stem[-1])) if stem else LAST


def _next_character(character: str) -> str:
    """The one that follows; halves of surrogate pairs are no characters."""
    following = ord(character) + 1
    return chr(0xE000) if 0xD800 <= following <= 0xDFFF else chr(following)


def _point(value: Value) -> Piece:
    # There is nothing between the two booleans, so that the cut between them must have one name.
    return Piece(before(False), before(True)) if value is False else Piece(before(value), after(value))


def _start(value: Value) -> Cut:
    return START if isinstance(value, str) else FIRST


def _join_touching(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Rising pieces, with those made one that touch."""
    joined = pieces[:1]
    for piece in pieces[1:]:
        if piece.low <= joined[-1].high:
            joined[-1] = Piece(joined[-1].low, max(piece.high, joined[-1].high))
        else:
            joined.append(piece)
    return tuple(joined)


def _lies_within(piece: Piece, rising: tuple[Piece, ...]) -> bool:
    """Whether one of these contains a piece: if any, then the last that does not begin after it."""
    at = bisect_right(rising, piece.low, key=_LOW) - 1
    return at >= 0 and piece.high <= rising[at].high


def _overlaps(ours: tuple[Piece, ...], theirs: tuple[Piece, ...]) -> Iterator[Piece]:
    """What is on pieces of both, rising: the one that ends first meets nothing further."""
    mine = other = 0
    while mine < len(ours) and other < len(theirs):
        a, b = ours[mine], theirs[other]
        low, high = max(a.low, b.low), min(a.high, b.high)
        if low < high:
            yield Piece(low, high)
        mine, other = mine + (a.high <= b.high), other + (b.high <= a.high)

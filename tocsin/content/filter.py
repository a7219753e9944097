"""What a subscription asks for: conditions on attributes, all of which a publication must fulfil."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod
from typing import Final

from tocsin.content.constraint import FIRST, LAST, Constraint, Piece, after_prefix, before
from tocsin.content.predicate import Comparison, Predicate
from tocsin.content.values import LARGEST_NUMBER, Publication, Value, ValueKind
from tocsin.errors import InvalidError

MOST_PREDICATES: Final = 32
MOST_BOXES: Final = 64
"""Alternatives that a filter may have: ``in`` has one for each value, ``!=`` two, and attributes multiply them."""
AT_ONCE: Final = 200
"""Alternatives of filters that are looked up among others before somebody else has a turn."""

Box = tuple[tuple[str, ValueKind | None, Piece | None], ...]
"""One alternative: at most one piece for each attribute. Where there is none, the attribute must only be there."""

Trait = tuple[str, type | None, Value | None]
"""An attribute that is asked for, or the one value that is asked of it; with its type, since ``True == 1``."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Filter:
    """Constraints by attribute. Filters that ask for the same are equal, however they were written.

    Make one with :func:`conjunction`, or read it with :func:`tocsin.content.language.parse`. One without constraints
    wants every publication.
    """

    constraints: tuple[tuple[str, Constraint], ...] = ()
    _by_attribute: dict[str, Constraint] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_attribute", dict(self.constraints))
        object.__setattr__(self, "_hash", hash(self.constraints))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self._hash == other._hash and self.constraints == other.constraints

    def __str__(self) -> str:
        return " and ".join(text for name, wanted in self.constraints for text in _texts(name, wanted))

    def matches(self, publication: Publication) -> bool:
        """Whether a checked publication fulfils all of it."""
        return all(name in publication and wanted.admits(publication[name]) for name, wanted in self.constraints)

    def covers(self, other: Filter) -> bool:
        """Whether every publication that the other one matches is matched by this one as well."""
        theirs = other._by_attribute
        return all(name in theirs and wanted.covers(theirs[name]) for name, wanted in self.constraints)

    def meets(self, other: Filter) -> bool:
        """Whether some publication may be matched by both."""
        theirs = other._by_attribute
        return all(wanted.meets(theirs[name]) for name, wanted in self.constraints if name in theirs)

    def points(self) -> Iterator[tuple[str, Value]]:
        """The attributes that must have one certain value."""
        for name, wanted in self.constraints:
            if len(wanted.pieces) == 1 and wanted.pieces[0].is_point:
                yield name, wanted.pieces[0].low[1]

    def traits(self) -> Iterator[Trait]:
        """What every filter that it covers has as well: the attributes, and those that must have one certain value."""
        for name, _ in self.constraints:
            yield name, None, None
        for name, value in self.points():
            yield name, type(value), value

    @property
    def alternatives(self) -> int:
        """How many there are: to find it among others takes as much longer."""
        return prod(max(1, len(wanted.pieces)) for _, wanted in self.constraints)

    def boxes(self) -> Iterator[Box]:
        """The alternatives; a publication is in one of them at most."""
        choices = [
            [(name, wanted.kind, piece) for piece in wanted.pieces or (None,)] for name, wanted in self.constraints
        ]
        return product(*choices)


def conjunction(predicates: Iterable[Predicate]) -> Filter:
    """What fulfils all predicates; if nothing can, or there are too many, it is an InvalidError."""
    wanted: dict[str, Constraint] = {}
    given = list(predicates)
    if len(given) > MOST_PREDICATES:
        raise InvalidError(f"a filter with {len(given)} conditions; at most {MOST_PREDICATES} are taken")
    for predicate in given:
        wanted[predicate.attribute] = _narrow(wanted.get(predicate.attribute, Constraint()), predicate)
    made = Filter(tuple(sorted(wanted.items(), key=lambda item: item[0])))
    if made.alternatives > MOST_BOXES:
        raise InvalidError(
            f"a filter with {made.alternatives} alternatives; at most {MOST_BOXES} are taken, so make several of it"
        )
    return made


def _narrow(before: Constraint, predicate: Predicate) -> Constraint:
    asked = predicate.constraint
    both = before.narrow(asked) if asked is not None else None
    if both is None:
        raise InvalidError(f"no value of {predicate.attribute!r} can be all that is asked of it")
    return both


def _texts(name: str, wanted: Constraint) -> Iterator[str]:
    """Conditions that read back as the same constraint."""
    shown = name if name.isidentifier() and name.isascii() and name.lower() not in RESERVED else f"`{name}`"
    if wanted.kind is None:
        yield f"{shown} {Comparison.EXISTS.value}"
    elif all(piece.is_point for piece in wanted.pieces):
        yield _list_text(shown, [piece.low[1] for piece in wanted.pieces])
    else:
        yield from _bounds(shown, Piece(wanted.pieces[0].low, wanted.pieces[-1].high))
        # What lies between two pieces is one value that is left out.
        yield from (f"{shown} != {quote(piece.high[1])}" for piece, _ in pairwise(wanted.pieces))


def _list_text(name: str, values: list[Value]) -> str:
    if len(values) == 1:
        return f"{name} = {quote(values[0])}"
    return f"{name} in ({', '.join(quote(value) for value in values)})"


def _bounds(name: str, piece: Piece) -> Iterator[str]:
    low, high = piece
    if low not in (FIRST, before("")) and isinstance(low[1], str) and high == after_prefix(low[1]) and not low[2]:
        yield f"{name} starts with {quote(low[1])}"
        return
    if (low, high) in ((before(""), LAST), (before(False), (0, True, 1))):
        yield f"{name} >= ''" if low == before("") else f"{name} in (false, true)"
        return
    if low not in (FIRST, before("")):
        yield f"{name} {'>' if low[2] else '>='} {quote(low[1])}"
    if high != LAST:
        yield f"{name} {'<=' if high[2] else '<'} {quote(high[1])}"


def quote(value: Value) -> str:
    """A value as it is written."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return str(value).lower()
    # Whole numbers beyond 2^53 would not be read back, as they are not told from their neighbours.
    return str(int(value)) if value == int(value) and abs(value) <= LARGEST_NUMBER else repr(float(value))


RESERVED: Final = frozenset({"and", "or", "not", "in", "exists", "starts", "with", "true", "false", "between"})

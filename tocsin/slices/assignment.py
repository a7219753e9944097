"""Which slice a record goes to: a function of the value of a column, or of several as a tuple, chosen by its text.

The same value goes to the same slice for the life of a feed, in every process and after every restart; ``random`` alone
does not care. A new assignment is one class here and one line in :data:`ASSIGNMENTS`. A function of one's own runs in a
process of its own (:mod:`tocsin.data.processing.slicing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import blake2b
from math import floor, isfinite
from random import Random
from typing import Any, ClassVar, Protocol

from tocsin.errors import InvalidError


class SliceAssignment(Protocol):
    """Maps a value to a slice from 0 up to ``slices``; None, a missing value, goes to slice 0."""

    @property
    def columns(self) -> int:
        """Of how many columns the value is made; with more than one it is a tuple."""

    @property
    def by_value(self) -> bool:
        """Whether equal values go to the same slice."""

    def __call__(self, value: Any, slices: int, /) -> int:
        """The slice of ``value``."""


def slice_by_hash(value: object, slices: int) -> int:
    """Spread values evenly by a stable hash of their text."""
    if value is None:
        return 0
    digest = blake2b(canonical_text(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % slices


@dataclass(frozen=True)
class HashAssignment:
    """By a stable hash of the value's text: the default, for values of any kind, and for several together."""

    columns: int = 1
    by_value: ClassVar[bool] = True

    def __call__(self, value: object, slices: int, /) -> int:
        """The slice of ``value``."""
        return slice_by_hash(value, slices)


@dataclass(frozen=True)
class ModuloAssignment:
    """The remainder of a whole number: sensors 21, 1, 52 and 19 go to slices 1, 1, 2 and 9 of 10."""

    columns: ClassVar[int] = 1
    by_value: ClassVar[bool] = True

    def __call__(self, value: object, slices: int, /) -> int:
        """The slice of ``value``. Raises InvalidError if it is no whole number."""
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not isfinite(value):
            raise _no_number(value)
        if value != int(value):
            raise _no_number(value)
        return int(value) % slices


@dataclass(frozen=True)
class RandomAssignment:
    """Any slice, as even as chance makes it; for records that nobody looks for by their value."""

    columns: ClassVar[int] = 1
    by_value: ClassVar[bool] = False
    seed: int | None = None
    _random: Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_random", Random(self.seed))

    def __call__(self, value: object, slices: int, /) -> int:  # noqa: ARG002
        """Any."""
        return self._random.randrange(slices)


@dataclass(frozen=True)
class GridAssignment:
    """By the cell of a grid that two numbers lie in, such as x and y; what is in one cell is in one slice.

    A value that is missing or not finite goes to slice 0.
    """

    columns: ClassVar[int] = 2
    by_value: ClassVar[bool] = True
    cell: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.cell) and self.cell > 0):
            raise InvalidError(f"a grid needs cells of more than 0, not {self.cell:g}: write grid:500, say")

    def __call__(self, value: Sequence[float | Decimal | None] | None, slices: int, /) -> int:
        """The slice of the cell of a pair."""
        x, y = value or (None, None)
        if x is None or y is None:
            return 0
        # A decimal is divided by no float, and what is large by what is small may be infinite.
        across, up = float(x) / self.cell, float(y) / self.cell
        if not (isfinite(across) and isfinite(up)):
            return 0
        return slice_by_hash(f"{floor(across)} {floor(up)}", slices)


def choose_slice(function: Callable[[Any, int], object], value: Any, slices: int) -> int | None:
    """The slice that a function of one's own chooses: value and number of slices in, a slice out; a tuple where there
    are several columns. None where it raises or exits, or gives what is no slice."""
    try:
        chosen = function(value, slices)
    except (Exception, SystemExit):
        return None
    return int(chosen) if isinstance(chosen, int) and 0 <= chosen < slices else None


def slice_without_function(value: Any, slices: int) -> int:
    """The slice of a value for which a function of one's own has none: so that nothing is refused or lost by it."""
    return slice_by_hash(repr(value), slices)


ASSIGNMENTS: dict[str, Callable[..., SliceAssignment]] = {
    "hash": lambda: HashAssignment(),
    "modulo": ModuloAssignment,
    "random": RandomAssignment,
    "grid": lambda cell="1": GridAssignment(_number(cell)),
}
DEFAULT = "hash"


def assignment(text: str = DEFAULT, columns: int = 1) -> SliceAssignment:
    """The assignment that a text means: a name, with what follows a colon ("grid:500"), and no function of one's own.

    ``columns`` is how many of them a hash is given.
    """
    name, colon, rest = text.partition(":")
    if text == DEFAULT:
        return HashAssignment(columns)
    made = ASSIGNMENTS.get(name)
    if made is None:
        known = ", ".join(sorted(ASSIGNMENTS))
        raise InvalidError(
            f"there is no slice assignment {text!r}: choose one of {known}, or write package.module:function"
        )
    try:
        return made(rest) if colon else made()
    except TypeError:
        raise InvalidError(f"the slice assignment {name!r} takes nothing after a colon: {text!r}") from None


def is_function(text: str) -> bool:
    """Whether an assignment is a function of one's own."""
    name, colon, _ = text.partition(":")
    return bool(colon) and name not in ASSIGNMENTS


def follows_key(using: str, columns: Sequence[str], primary_key: str) -> bool:
    """Whether records with the same primary key go to the same slice; a function of one's own has to see to it."""
    return list(columns) == [primary_key] and (is_function(using) or assignment(using).by_value)


def require_of_key(using: str, columns: Sequence[str], primary_key: str | None) -> None:
    """Refuses an assignment by which records of one key could be in two slices, where several nodes share the slices.

    Each node knows the ids of its own slices only; a record that is sent again must come to the node that has seen it.
    Without a primary key there is nothing to be seen again, and any assignment will do.
    """
    if primary_key is None or follows_key(using, columns, primary_key):
        return
    raise InvalidError(
        "processing nodes can share these slices only if the slice follows from the primary key: slice by "
        f"{primary_key} instead of {', '.join(columns) or 'chance'}, or keep all slices on one node"
    )


def canonical_text(value: object) -> str:
    """One text for all ways to write a value: 1, 1.0 and Decimal("1.00") are the same, as are equal instants."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return _number_text(value)
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case tuple():
            return "\x1f".join("" if each is None else canonical_text(each) for each in value)
    raise InvalidError(f"a record cannot be assigned to a slice by a value of type {type(value).__name__}")


def _number_text(value: float | Decimal) -> str:
    if isfinite(value) and value == int(value):
        return str(int(value))
    return str(value.normalize()) if isinstance(value, Decimal) else repr(value)


def _no_number(value: object) -> InvalidError:
    return InvalidError(f"a record is assigned to a slice by the remainder of a whole number, and {value!r} is none")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidError(f"a grid's cell is a number, not {text!r}: write grid:500, say") from None

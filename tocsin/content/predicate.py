"""One condition on one attribute: ``high > 40``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tocsin.content import constraint
from tocsin.content.constraint import Constraint
from tocsin.content.values import Value, ValueKind, check_name, check_value, kind_of
from tocsin.errors import InvalidError


class Comparison(Enum):
    """How an attribute is compared, as it is written."""

    EQUAL = "="
    DIFFERENT = "!="
    BELOW = "<"
    UP_TO = "<="
    ABOVE = ">"
    AT_LEAST = ">="
    PREFIX = "starts with"
    IN = "in"
    EXISTS = "exists"


@dataclass(frozen=True)
class Predicate:
    """An attribute, an operator, and the values it takes: one, for ``in`` any number, for ``exists`` none.

    A publication without the attribute, or with a value of another kind there, fulfils no predicate on it, not even
    ``!=``.
    """

    attribute: str
    operator: Comparison
    values: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.attribute)
        what = f"the value of {self.attribute!r}"
        object.__setattr__(self, "values", tuple(check_value(value, what) for value in self.values))
        self._check()

    @property
    def constraint(self) -> Constraint | None:
        """The values that fulfil it; None when there are none."""
        match self.operator:
            case Comparison.EXISTS:
                return Constraint()
            case Comparison.IN:
                return constraint.one_of(self.values)
            case Comparison.PREFIX:
                return constraint.starting_with(str(self.values[0]))
            case _:
                return _COMPARISONS[self.operator](self.values[0])

    def _check(self) -> None:
        wanted = {Comparison.EXISTS: 0, Comparison.IN: max(len(self.values), 1)}.get(self.operator, 1)
        if len(self.values) != wanted:
            raise InvalidError(f"'{self.operator.value}' takes another number of values than {len(self.values)}")
        kinds = {kind_of(value) for value in self.values}
        if len(kinds) > 1:
            raise InvalidError(
                f"'{self.attribute} in' lists values of several kinds; give strings, numbers or booleans"
            )
        if self.operator is Comparison.PREFIX and kinds != {ValueKind.STRING}:
            raise InvalidError(f"'starts with' is for strings; {self.values[0]} is none")
        if self.operator in _ORDERED and kinds == {ValueKind.BOOLEAN}:
            raise InvalidError(f"'{self.operator.value}' is not for true and false; use = or !=")


_ORDERED = frozenset({Comparison.BELOW, Comparison.UP_TO, Comparison.ABOVE, Comparison.AT_LEAST})

_COMPARISONS = {
    Comparison.EQUAL: constraint.equal_to,
    Comparison.DIFFERENT: constraint.different_from,
    Comparison.BELOW: constraint.below,
    Comparison.UP_TO: constraint.up_to,
    Comparison.ABOVE: constraint.above,
    Comparison.AT_LEAST: constraint.at_least,
}

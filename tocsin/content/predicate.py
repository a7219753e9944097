"""One condition on one attribute: ``high > 40``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tocsin.content import constraint
from tocsin.content.constraint import Constraint
from tocsin.content.values import Value, ValueKind, check_name, check_value, kind_of
from tocsin.errors import InvalidError


class Operator(Enum):
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
    operator: Operator
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
            case Operator.EXISTS:
                return Constraint()
            case Operator.IN:
                return constraint.one_of(self.values)
            case Operator.PREFIX:
                return constraint.starting_with(str(self.values[0]))
            case _:
                return _COMPARISONS[self.operator](self.values[0])

    def _check(self) -> None:
        wanted = {Operator.EXISTS: 0, Operator.IN: max(len(self.values), 1)}.get(self.operator, 1)
        if len(self.values) != wanted:
            raise InvalidError(f"'{self.operator.value}' takes another number of values than {len(self.values)}")
        kinds = {kind_of(value) for value in self.values}
        if len(kinds) > 1:
            raise InvalidError(
                f"'{self.attribute} in' lists values of several kinds; give strings, numbers or booleans"
            )
        if self.operator is Operator.PREFIX and kinds != {ValueKind.STRING}:
            raise InvalidError(f"'starts with' is for strings; {self.values[0]} is none")
        if self.operator in _ORDERED and kinds == {ValueKind.BOOLEAN}:
            raise InvalidError(f"'{self.operator.value}' is not for true and false; use = or !=")


_ORDERED = frozenset({Operator.BELOW, Operator.UP_TO, Operator.ABOVE, Operator.AT_LEAST})

_COMPARISONS = {
    Operator.EQUAL: constraint.equal_to,
    Operator.DIFFERENT: constraint.different_from,
    Operator.BELOW: constraint.below,
    Operator.UP_TO: constraint.up_to,
    Operator.ABOVE: constraint.above,
    Operator.AT_LEAST: constraint.at_least,
}

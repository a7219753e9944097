"""Random filters and publications over so few values that they meet often."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nextafter
from typing import Any

from hypothesis import strategies as st

from tocsin.content.filter import Filter, conjunction
from tocsin.content.predicate import Comparison, Predicate
from tocsin.content.values import Value
from tocsin.errors import InvalidError

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
SOME_NUMBERS = [-2.0, -1.0, 0.0, 5e-324, 0.5, nextafter(1, -inf), 1.0, nextafter(1, inf), 2.0, 3.0]
"""Rising. Some have no number between them in double precision, though a line of numbers is taken to be dense."""
NUMBERS = st.sampled_from(SOME_NUMBERS)
STRINGS = st.sampled_from(["", "a", "ab", "abc", "b", "ba", "c", "\U0010ffff", "a\U0010ffff"])
VALUES: st.SearchStrategy[Value] = st.one_of(NUMBERS, STRINGS, st.booleans())
PUBLICATIONS = st.dictionaries(NAMES, VALUES, max_size=5)

_ORDERED = [Comparison.BELOW, Comparison.UP_TO, Comparison.ABOVE, Comparison.AT_LEAST]
_ANY = [Comparison.EQUAL, Comparison.DIFFERENT]
_LISTS = st.one_of(*(st.lists(each, min_size=1, max_size=3) for each in (NUMBERS, STRINGS, st.booleans())))

PREDICATES = st.one_of(
    st.builds(lambda name, operator, value: Predicate(name, operator, (value,)), NAMES, st.sampled_from(_ANY), VALUES),
    st.builds(
        lambda name, operator, value: Predicate(name, operator, (value,)),
        NAMES,
        st.sampled_from(_ORDERED),
        st.one_of(NUMBERS, STRINGS),
    ),
    st.builds(lambda name, prefix: Predicate(name, Comparison.PREFIX, (prefix,)), NAMES, STRINGS),
    st.builds(lambda name, values: Predicate(name, Comparison.IN, tuple(values)), NAMES, _LISTS),
    st.builds(lambda name: Predicate(name, Comparison.EXISTS), NAMES),
)
CONJUNCTIONS = st.lists(PREDICATES, min_size=1, max_size=5)


def filter_of(predicates: list[Predicate]) -> Filter | None:
    """Their conjunction; None when nothing can fulfil it."""
    try:
        return conjunction(predicates)
    except InvalidError:
        return None


FILTERS = CONJUNCTIONS.map(filter_of).filter(lambda made: made is not None)


def fulfils(publication: dict[str, Value], predicate: Predicate) -> bool:
    """The definition of each operator, by Python's own comparisons."""
    if predicate.attribute not in publication:
        return False
    value = publication[predicate.attribute]
    if predicate.operator is Comparison.EXISTS:
        return True
    wanted = predicate.values[0]
    if (isinstance(value, bool), isinstance(value, str)) != (isinstance(wanted, bool), isinstance(wanted, str)):
        return False
    return _COMPARED[predicate.operator](value, predicate.values)


_COMPARED: dict[Comparison, Callable[[Any, tuple[Any, ...]], bool]] = {
    Comparison.EQUAL: lambda value, values: value == values[0],
    Comparison.DIFFERENT: lambda value, values: value != values[0],
    Comparison.BELOW: lambda value, values: value < values[0],
    Comparison.UP_TO: lambda value, values: value <= values[0],
    Comparison.ABOVE: lambda value, values: value > values[0],
    Comparison.AT_LEAST: lambda value, values: value >= values[0],
    Comparison.PREFIX: lambda value, values: value.startswith(values[0]),
    Comparison.IN: lambda value, values: value in values,
}

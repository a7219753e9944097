"""Filters: what they match, what they cover, and how they are written."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.content.strategies import CONJUNCTIONS, FILTERS, PUBLICATIONS, SOME_NUMBERS, filter_of, fulfils
from tests.examples import examples
from tocsin.content.filter import Filter, conjunction
from tocsin.content.language import MOST_CANONICAL_TEXT, parse
from tocsin.content.predicate import Comparison, Predicate
from tocsin.content.values import Publication, Value, check_publication
from tocsin.errors import FilterError, InvalidError


@given(CONJUNCTIONS, PUBLICATIONS)
@settings(max_examples=examples(500))
def test_a_filter_matches_what_fulfils_all_its_predicates(
    predicates: list[Predicate], publication: dict[str, Value]
) -> None:
    made = filter_of(predicates)
    expected = all(fulfils(publication, predicate) for predicate in predicates)
    assert (made is not None and made.matches(publication)) == expected


@given(FILTERS)
@settings(max_examples=examples(300))
def test_a_filter_reads_back_as_it_is_written(filter: Filter) -> None:
    assert parse(str(filter)) == filter


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
@example(1e20, ">")
@example(-1.7976931348623157e308, "!=")
@example(float(2**53), "=")
def test_a_filter_reads_back_whatever_number_it_has(number: float, operator: str) -> None:
    filter = parse(f"a {operator} {number!r}")
    assert parse(str(filter)) == filter


@pytest.mark.parametrize(
    "text",
    [
        " and ".join(f"`{chr(97 + at) * 128}`between'{'x' * 90}'and'{'y' * 8}'" for at in range(16)),
        "é" * 128 + " in(" + ",".join(f"{at + 1}e13,-{at + 1}e12" for at in range(32)) + ")",
        " and ".join(f"{'n' * 90}{at}<1e15" for at in range(32)),
    ],
)
def test_a_filter_that_becomes_longer_reads_back(text: str) -> None:
    filter = parse(text)
    assert len(str(filter)) > len(text)
    assert parse(str(filter), MOST_CANONICAL_TEXT) == filter


@given(FILTERS, FILTERS, PUBLICATIONS)
@settings(max_examples=examples(500))
def test_who_covers_matches_whatever_the_other_matches(one: Filter, other: Filter, publication: Publication) -> None:
    if one.covers(other) and other.matches(publication):
        assert one.matches(publication)
    if not one.meets(other):
        assert not (one.matches(publication) and other.matches(publication))


# All that can be told apart by filters over these values, with a value in each gap between them: of numbers an exact
# one, as there may be none in double precision.
_BETWEEN: list[Any] = [(Fraction(low) + Fraction(high)) / 2 for low, high in pairwise([-4.0, *SOME_NUMBERS, 4.0])]
_TELLING: list[Value | None] = [None, *SOME_NUMBERS, *_BETWEEN, True, False]
_TELLING += [
    "",
    "0",
    "a",
    "aa",
    "ab",
    "abb",
    "abc",
    "abc0",
    "abd",
    "b",
    "b0",
    "ba",
    "ba0",
    "bb",
    "c",
    "c0",
    "d",
    "\U0010ffff",
]
_TELLING += ["a\U0010ffff", "a\U0010ffff0", "\U0010ffff0"]


@given(FILTERS, FILTERS)
@settings(max_examples=examples(300))
def test_covering_is_what_its_definition_says(one: Filter, other: Filter) -> None:
    # A filter is a product of conditions on attributes, so that what tells two apart tells them apart by one attribute.
    names = sorted({name for name, _ in (*one.constraints, *other.constraints)})
    fitting = {name: [value for value in _TELLING if _admitted(other, name, value)] for name in names}
    escaping = (
        name for name in names for value in fitting[name] if not _admitted(one, name, value) and all(fitting.values())
    )
    assert one.covers(other) == (next(escaping, None) is None)


def _admitted(filter: Filter, name: str, value: Value | None) -> bool:
    wanted = dict(filter.constraints).get(name)
    return wanted is None or (value is not None and wanted.admits(value))


@given(FILTERS, PUBLICATIONS)
@settings(max_examples=examples(300))
def test_the_boxes_of_a_filter_do_not_meet(filter: Filter, publication: dict[str, Value]) -> None:
    boxes = list(filter.boxes())
    for (at, box), (other_at, other) in product(enumerate(boxes), enumerate(boxes)):
        if at < other_at:
            pieces = [(one, two) for (_, _, one), (_, _, two) in zip(box, other, strict=True)]
            assert any(one and two and (one.high <= two.low or two.high <= one.low) for one, two in pieces)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "write a condition"),
        ("high > YHOO", 1, 8, "'YHOO'"),
        ("high >", 1, 7, "a value is expected"),
        ("high 40", 1, 6, "an operator is expected"),
        ("a = 1 or b = 2", 1, 7, "subscribe once for each"),
        ("not a = 1", 1, 1, "use !="),
        ("a = 1,", 1, 6, "joined by 'and'"),
        ('a = 1 and\n  b = "x"', 2, 7, "single quotes"),
        ("a = 'x", 1, 5, "must be closed"),
        ("a starts 'x'", 1, 10, "starts with"),
        ("a in ('x', 5)", 1, 1, "several kinds"),
        ("a in 'x'", 1, 6, "takes a list"),
        ("a starts with 5", 1, 1, "for strings"),
        ("a < true", 1, 1, "use = or !="),
        ("a = 1 and and b = 2", 1, 11, "an attribute is expected"),
        ("a = 5 ; drop", 1, 7, "means nothing"),
        ("a = 9007199254740993", 1, 1, "cannot be told"),
        ("a > 1e400", 1, 1, "finite"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(FilterError, match=said) as refused:
        parse(text)
    assert (refused.value.line, refused.value.column) == (line, column)


def test_what_nothing_can_fulfil_is_refused() -> None:
    with pytest.raises(FilterError, match="no value of 'high'"):
        parse("high > 40 and high < 30")
    with pytest.raises(FilterError, match="no value of 'high'"):
        parse("high > 40 and high = 'x'")


def test_a_filter_has_bounds() -> None:
    with pytest.raises(FilterError, match="4,096"):
        parse("a = '" + "x" * 5000 + "'")
    with pytest.raises(FilterError, match="at most 32"):
        parse(" and ".join(f"a{at} > 1" for at in range(33)))
    with pytest.raises(FilterError, match="at most 64"):
        parse(" and ".join(f"a{at} != 1" for at in range(7)))


@pytest.mark.parametrize(
    ("publication", "said"),
    [
        ({"a": float("nan")}, "finite"),
        ({"a": [1]}, "list"),
        ({"a": 2**60}, "cannot be told"),
        ({"": 1}, "no attribute"),
        ({5: 1}, "no attribute"),
        ({"a": "x" * 2000}, "1,024"),
        ({"a": "\ud800"}, "surrogate"),
        ({f"a{at}": at for at in range(65)}, "at most 64"),
    ],
)
def test_what_is_no_publication_is_refused(publication: dict[str, Value], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        check_publication(publication)


def test_what_asks_for_the_same_is_equal_however_it_is_written() -> None:
    assert (
        parse("a >= 1 and a <= 1")
        == parse("a = 1")
        == parse("a in (1, 1.0) and A_a exists and a = 1".replace("A_", ""))
    )
    assert parse("s starts with 'ab'") == parse("s >= 'ab' and s < 'ac'")
    assert parse("t in (true, false)") != parse("t exists")
    assert hash(parse("b = 2 and a = 1")) == hash(parse("a = 1 and b = 2"))


def test_predicates_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidError, match="another number of values"):
        Predicate("a", Comparison.EQUAL, ())
    assert conjunction([Predicate("a", Comparison.EXISTS)]).matches({"a": False})


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("symbol = 'A' and high > 3\n  and high < 2 and low > 1", 2, 7),
        ("high between 3 and 2", 1, 1),
        ("a = 1 and a = 2 and b = 1 and b = 2", 1, 11),
        (" and ".join(f"a{number:02} = 1" for number in range(40)), 1, 32 * 12 + 1),
        ("x = 1 and a in (" + ", ".join(map(str, range(500))) + ")", 1, 11),
        ("a = 1 and\n" + "b" * 5000, 2, 4096 - 10 + 1),
    ],
)
def test_what_is_too_much_or_cannot_be_fulfilled_is_refused_with_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(FilterError) as refused:
        parse(text)
    assert (refused.value.line, refused.value.column) == (line, column)
    assert str(refused.value).startswith(f"line {line}, column {column}: ")

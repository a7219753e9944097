"""The poset of covering, compared with its definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.content.strategies import FILTERS
from tests.examples import examples
from tocsin.content.filter import Filter
from tocsin.content.language import parse
from tocsin.content.poset import Poset
from tocsin.errors import NotFoundError


def parents_by_definition(filter: Filter, others: set[Filter]) -> set[Filter]:
    """The least general ones of those that cover a filter."""
    covering = {other for other in others if other != filter and other.covers(filter)}
    return {one for one in covering if not any(one != other and one.covers(other) for other in covering)}


def check(poset: Poset, expected: set[Filter]) -> None:
    """Everything has the place that the definition gives it."""
    assert set(poset) == expected
    assert len(poset) == len(expected)
    top = {one for one in expected if not any(other != one and other.covers(one) for other in expected)}
    assert set(poset.covering_set()) == top
    for filter in expected:
        parents = poset.parents(filter)
        assert len(parents) == len(set(parents))
        assert set(parents) == parents_by_definition(filter, expected)
        for child in poset.children(filter):
            assert filter in poset.parents(child)


@given(st.lists(st.tuples(st.booleans(), FILTERS), max_size=40))
@settings(max_examples=examples(200), deadline=None)
def test_each_filter_is_below_the_least_general_that_cover_it(changes: list[tuple[bool, Filter]]) -> None:
    poset, expected = Poset(), set[Filter]()
    for leaves, filter in changes:
        before = set(poset.covering_set())
        if leaves and expected:
            gone = sorted(expected, key=str)[len(str(filter)) % len(expected)]
            entered, left = poset.remove(gone)
            expected.remove(gone)
        else:
            entered, left = poset.insert(filter)
            expected.add(filter)
        check(poset, expected)
        after = set(poset.covering_set())
        assert (set(entered), set(left)) == (after - before, before - after)
        assert (len(entered), len(left)) == (len(set(entered)), len(set(left)))


def test_many_siblings_are_told_apart_by_their_values() -> None:
    poset, expected = Poset(), set[Filter]()
    texts = [f"symbol = 'S{at % 40}' and high > {at % 7}" for at in range(200)]
    texts += [f"symbol = 'S{at}'" for at in range(30)] + ["high > 3", "class exists and high > 2", "symbol exists"]
    for text in texts:
        poset.insert(parse(text))
        expected.add(parse(text))
    check(poset, expected)
    for text in texts[::3]:
        if parse(text) in poset:
            poset.remove(parse(text))
            expected.remove(parse(text))
    check(poset, expected)


def test_many_siblings_that_became_few_are_still_found() -> None:
    poset, texts = Poset(), [f"symbol = 'S{at}' and high > 3" for at in range(40)]
    for text in texts:
        poset.insert(parse(text))
    for text in texts[:35]:
        poset.remove(parse(text))
    poset.insert(parse("symbol = 'S39' and high > 4"))
    poset.insert(parse("symbol = 'T' and high > 3"))
    poset.insert(parse("high > 2"))
    check(
        poset,
        {*(parse(text) for text in (*texts[35:], "symbol = 'S39' and high > 4", "high > 2"))}
        | {parse("symbol = 'T' and high > 3")},
    )


def test_a_filter_need_not_be_there_to_be_covered() -> None:
    poset = Poset()
    poset.insert(parse("high > 3"))
    assert poset.is_covered(parse("high > 4 and symbol = 'A'"))
    assert not poset.is_covered(parse("high > 2"))


def test_what_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(NotFoundError, match="high > 3"):
        Poset().remove(parse("high > 3"))


def test_to_take_out_what_lies_between_many_compares_none_of_these_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = 40
    above = [parse(f"a > {at} and b > {many - at}") for at in range(many)]
    below = [parse(f"a > {many + 1 + at} and b > {2 * many + 1 - at}") for at in range(many)]
    aside = [parse(f"a > {many + at} and b > {many - at - 1}") for at in range(1, many)]
    between, poset, compared = parse(f"a > {many} and b > {many}"), Poset(), 0
    for filter in (*above, between, *below, *aside):
        poset.insert(filter)
    covers = Filter.covers

    def count(mine: Filter, other: Filter) -> bool:
        nonlocal compared
        compared += 1
        return covers(mine, other)

    monkeypatch.setattr(Filter, "covers", count)
    poset.remove(between)
    monkeypatch.undo()
    # Each of those above with each that is above some of those below, once.
    assert compared <= many * len(aside)
    check(poset, {*above, *below, *aside})

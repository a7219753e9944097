"""The covering set of filters that come and go many at a time, compared with its definition."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.content.strategies import FILTERS, PUBLICATIONS
from tocsin.content.covering import CoveringSet
from tocsin.content.filter import Filter
from tocsin.content.filterset import FilterSet
from tocsin.content.language import parse
from tocsin.content.values import Value

CHANGES = st.lists(st.tuples(st.lists(FILTERS, max_size=8), st.lists(st.integers(0, 50), max_size=6)), max_size=6)


def covering_set(filters: set[Filter]) -> set[Filter]:
    """By definition."""
    return {one for one in filters if not any(other != one and other.covers(one) for other in filters)}


class Checked:
    """A covering set, and what must be in it."""

    def __init__(self) -> None:
        self.tested, self.expected = CoveringSet(), set[Filter]()

    def change(self, add: list[Filter], drop: list[Filter]) -> None:
        before = covering_set(self.expected)
        entered, left = self.tested.change(add, drop)
        self.expected = (self.expected | set(add)) - set(drop)
        after = covering_set(self.expected)
        assert set(self.tested.covering_set()) == after
        assert (set(entered), set(left)) == (after - before, before - after)
        assert (len(entered), len(left)) == (len(set(entered)), len(set(left)))
        assert len(self.tested) == len(self.expected)


@given(CHANGES)
@settings(max_examples=60, deadline=None)
def test_the_covering_set_is_what_no_other_filter_covers(changes: list[tuple[list[Filter], list[int]]]) -> None:
    checked = Checked()
    for add, numbers in changes:
        held = sorted(checked.expected, key=str)
        checked.change(add, [held[number % len(held)] for number in numbers if held])
    checked.change([], list(checked.expected))


def test_many_that_do_not_cover_each_other_come_and_go_at_once() -> None:
    random, checked = Random(5), Checked()
    numbers = [random.uniform(0, 100) for _ in range(300)]
    checked.change([parse(f"a > {number} and b < {number}") for number in numbers[:200]], [])
    assert len(list(checked.tested.covering_set())) == 200
    # Wider ones among them, so many that the covering set is looked up in what comes, not the other way round.
    checked.change([parse(f"a > {number - 1} and b < {number + 1}") for number in numbers[100:]], [])
    checked.change([parse("a > 50"), parse("c = 1")], [])
    checked.change([], [parse(f"a > {number - 1} and b < {number + 1}") for number in numbers[150:]])
    checked.change([parse("a in (1, 2)"), parse("a in (1, 3)"), parse("a in (1, 2, 3, 4)")], [parse("a > 50")])


def test_a_filter_that_is_added_and_dropped_at_once_is_not_there() -> None:
    checked, wide, narrow = Checked(), parse("high > 3"), parse("high > 5")
    checked.change([wide, narrow], [wide])
    checked.change([wide], [wide, parse("low > 1")])
    assert narrow in checked.tested
    assert wide not in checked.tested


@given(st.lists(FILTERS, max_size=10), st.lists(st.integers(0, 20), max_size=5), PUBLICATIONS)
@settings(deadline=None)
def test_a_set_of_filters_wants_what_any_of_them_wants(
    filters: list[Filter], removed: list[int], publication: dict[str, Value]
) -> None:
    tested, expected = FilterSet(), dict.fromkeys(filters)
    for filter in filters:
        tested.insert(filter)
    for number in removed:
        if filters:
            tested.remove(filters[number % len(filters)])
            expected.pop(filters[number % len(filters)], None)
    assert list(tested) == list(expected)
    assert all(filter in tested for filter in expected)
    assert tested.matches_any(publication) == any(filter.matches(publication) for filter in expected)

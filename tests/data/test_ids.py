"""Sorted arrays of ids behave as sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.ids import Ids, among, ascending, common, together, without
from tocsin.errors import InvalidError

IdSets = st.sets(st.integers(-50, 50) | st.integers(-(1 << 63), (1 << 63) - 1))


@given(IdSets, IdSets)
def test_the_operations_are_those_of_sets(left: set[int], right: set[int]) -> None:
    one, two = ascending(left), ascending(np.array([*right], np.int64))
    assert common(one, two).tolist() == sorted(left & right)
    assert without(one, two).tolist() == sorted(left - right)
    assert together(one, two).tolist() == sorted(left | right)
    assert among(one[::-1], two).tolist() == [be in right for be in sorted(left, reverse=True)]


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 20)), st.booleans())))
def test_the_last_word_about_an_id_counts(changes: list[tuple[bool, list[int], bool]]) -> None:
    ids, expected = Ids(), set[int]()
    for add, changed, look in changes:
        if add:
            ids.add(np.array(changed, np.int64))
            expected |= set(changed)
        else:
            ids.discard(np.array(changed, np.int64))
            expected -= set(changed)
        if look:
            assert ids.array().tolist() == sorted(expected)
    assert ids.array().tolist() == sorted(expected)


def test_an_array_once_given_out_does_not_change() -> None:
    ids = Ids(ascending([1, 2, 3]))
    before = ids.array()
    ids.discard(ascending([2]))
    ids.add(ascending(range(10, 10_000)))
    assert len(ids.array()) == 9_992
    assert before.tolist() == [1, 2, 3]


@pytest.mark.parametrize("ids", [[1 << 63], [None], ["5"], [1.0], np.array([1.5]), [[1], [2, 3]]])
def test_what_cannot_be_an_id_is_refused(ids: list[int]) -> None:
    with pytest.raises(InvalidError, match="whole numbers of at most 64 bits"):
        ascending(ids)

"""Groups are given to the brokers where most of their members are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tocsin.balance.refine.relabel import relabel


def _int32(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, np.int32)


def test_groups_that_are_home_under_another_name_move_nobody() -> None:
    assert relabel(_int32(1, 1, 2, 0), _int32(0, 0, 1, 2), np.ones(3, np.bool_), np.ones(3)).tolist() == [0, 0, 1, 2]


def test_groups_keep_their_broker_where_no_other_has_its_capacity() -> None:
    groups, home = _int32(1, 1, 0, 2, 2), _int32(0, 0, 1, 1, 1)
    assert relabel(groups, home, np.ones(3, np.bool_), np.array([1.0, 0.5, 0.5])).tolist() == [2, 2, 0, 1, 1]


def test_brokers_that_are_not_free_keep_their_group() -> None:
    free = np.array([False, True, True])
    assert relabel(_int32(1, 2, 0), _int32(0, 1, 2), free, np.ones(3)).tolist() == [2, 1, 0]


@given(seed=st.integers(0, 10_000))
def test_groups_stay_together_and_no_more_move_than_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, home = rng.integers(0, 4, (2, 30)).astype(np.int32)
    named = relabel(groups, home, np.ones(4, np.bool_), np.ones(4))
    assert len(set(zip(groups.tolist(), named.tolist(), strict=True))) == len(set(groups.tolist()))
    assert (named != home).sum() <= (groups != home).sum()


def test_who_is_nowhere_counts_for_no_broker() -> None:
    assert set(relabel(_int32(1, 0), _int32(-1, -1), np.ones(2, np.bool_), np.ones(2)).tolist()) == {0, 1}

"""Fault schedules of processing nodes: they hold, and the same seed is the same schedule."""

from __future__ import annotations

import pytest

from tocsin.simulate.faults.campaign import run_slice_schedule

SEEDS = 80
AT_ONCE = 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_every_record_is_processed_once_and_every_slice_has_one_owner(first: int) -> None:
    outcomes = [run_slice_schedule(seed) for seed in range(first, first + AT_ONCE)]
    assert {each.seed: each.wrong for each in outcomes if each.wrong} == {}
    assert all(each.notes for each in outcomes)
    assert any(each.moves for each in outcomes)

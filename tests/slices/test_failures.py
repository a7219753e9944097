"""What a node does about batches that fail: which slices the next one takes."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.slices.failures import FailingSlices
from tocsin.slices.limits import SliceLimits

LIMITS = SliceLimits(retry_seconds=1.0, longest_relapse_seconds=60.0)


class Trying:
    """A node that processes slices of which some are bad, a second for each batch."""

    def __init__(self, slices: int, bad: Collection[int], away: bool = False) -> None:
        self.failing, self.slices, self.bad, self.away = FailingSlices(LIMITS), list(range(slices)), set(bad), away
        self.now, self.batches = 0.0, list[list[int]]()
        self.quiet = False

    def step(self) -> list[int]:
        """One batch, or none if there is nothing to choose."""
        self.now += 1.0
        chosen = self.failing.choose(self.now, self.slices)
        if not chosen:
            return chosen
        self.batches.append(chosen)
        if self.away or self.bad & set(chosen):
            self.failing.fail(self.now, chosen, "it cannot be read")
        else:
            self.failing.succeed(chosen, not self.quiet)
        return chosen

    def steps(self, count: int) -> list[list[int]]:
        """So many batches."""
        return [self.step() for _ in range(count)]


@pytest.mark.parametrize("bad", range(16))
def test_a_slice_that_makes_batches_fail_is_found_by_halves_and_the_others_go_on(bad: int) -> None:
    trying = Trying(16, [bad])
    trying.steps(16)
    assert trying.failing.left_out == {bad: "it cannot be read"}
    assert trying.failing.problem == ""
    rest = [slice_ for slice_ in range(16) if slice_ != bad]
    assert sum(batch == rest for batch in trying.steps(30)) >= 20


@given(st.integers(2, 40), st.data())
def test_whatever_is_bad_all_others_are_processed_and_nothing_else_is_left_out(
    slices: int, data: st.DataObject
) -> None:
    bad = data.draw(st.sets(st.integers(0, slices - 1), max_size=max(1, slices // 4)))
    trying = Trying(slices, bad)
    trying.steps(12 * slices)
    assert trying.failing.left_out.keys() == bad
    trying.batches.clear()
    trying.steps(2 * len(bad) + 2)
    assert set().union(*trying.batches) >= set(range(slices)) - bad


def test_a_slice_that_is_left_out_is_tried_by_itself_after_longer_and_longer() -> None:
    trying = Trying(4, [2])
    trying.steps(300)
    tried = [at for at, batch in enumerate(trying.batches) if batch == [2]]
    pauses = [later - earlier for earlier, later in pairwise(tried)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= 2
    assert pauses[-1] == 60


def test_a_slice_that_is_known_to_fail_is_not_the_nodes_fault_however_little_the_others_have() -> None:
    trying = Trying(4, [2])
    trying.steps(20)
    assert trying.failing.left_out
    trying.quiet = True
    assert {trying.failing.problem for _ in range(200) if trying.step() is not None} == {""}
    assert trying.failing.left_out == {2: "it cannot be read"}
    trying.away = True
    trying.steps(10)
    assert trying.failing.problem == "it cannot be read"


def test_a_slice_that_can_be_read_again_is_one_of_all() -> None:
    trying = Trying(4, [2])
    trying.steps(20)
    trying.bad.clear()
    trying.steps(20)
    assert trying.failing.left_out == {}
    assert trying.step() == [0, 1, 2, 3]


def test_where_everything_fails_no_slice_is_to_blame_and_all_are_soon_processed_when_it_does_not() -> None:
    trying = Trying(64, [], away=True)
    trying.steps(500)
    assert trying.failing.left_out == {}
    assert trying.failing.problem == "it cannot be read"
    assert max(map(len, trying.batches[-20:])) == 64
    trying.away = False
    trying.batches.clear()
    trying.steps(20)
    assert set().union(*trying.batches) == set(range(64))
    assert trying.step() == list(range(64))
    assert trying.failing.problem == ""


def test_batches_without_records_prove_nothing() -> None:
    failing = FailingSlices(LIMITS)
    for now in range(40):
        chosen = failing.choose(float(now), [0, 1])
        if 0 in chosen:
            failing.fail(float(now), chosen, "the disk is full")
        elif chosen:
            failing.succeed(chosen, False)
    assert failing.left_out == {}
    assert failing.problem == "the disk is full"


def test_what_a_node_has_no_more_is_held_against_nobody() -> None:
    trying = Trying(4, [2])
    trying.steps(20)
    trying.failing.forget([2])
    assert trying.failing.left_out == {}
    assert trying.failing.wake([2]) < trying.now

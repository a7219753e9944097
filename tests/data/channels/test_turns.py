"""Whose turn it is: slow channels wait for each other, quick ones for quick ones, each in the order of their coming."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.channels.turns import Turns


def begun(turns: Turns) -> list[str]:
    names = []
    while (name := turns.next()) is not None:
        names.append(name)
    return names


def test_as_many_as_there_are_workers_begin_in_their_order() -> None:
    turns = Turns(2)
    for name in "abc":
        turns.enter(name)
    assert begun(turns) == ["a", "b"]
    turns.left("a", quick=True)
    assert begun(turns) == ["c"]


def test_one_that_turns_out_to_be_slow_makes_room() -> None:
    turns = Turns(1)
    for name in "ab":
        turns.enter(name)
    assert begun(turns) == ["a"]
    turns.slowed("a")
    assert begun(turns) == ["b"]


def test_known_slow_ones_take_turns_until_they_are_quick_again() -> None:
    turns = Turns(2)
    for name in "ab":
        turns.slowed(name)
        turns.enter(name)
    assert begun(turns) == ["a"]
    turns.left("a", quick=True)
    assert begun(turns) == ["b"]
    turns.enter("a")
    assert begun(turns) == ["a"], "it was quick the last time"


@given(st.integers(1, 6), st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=60))
def test_everybody_who_waits_gets_a_turn_and_no_lane_is_overfull(workers: int, steps: list[tuple[str, bool]]) -> None:
    turns, running, waiting = Turns(workers), set[str](), list[str]()
    for name, slow in steps:
        if name in running:
            if slow:
                turns.slowed(name)
            turns.left(name, quick=not slow)
            running.discard(name)
        elif name not in waiting:
            turns.enter(name)
            waiting.append(name)
        for one in begun(turns):
            waiting.remove(one)
            running.add(one)
        assert len(running) <= workers + max(1, workers // 2)
    while running:
        one = min(running)
        turns.left(one, quick=True)
        running.discard(one)
        for other in begun(turns):
            waiting.remove(other)
            running.add(other)
    assert waiting == []

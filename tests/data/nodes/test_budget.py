"""A node matches as many channels as fit into the time, and leaves those alone that do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.nodes.budget import MatchingBudget


def test_channels_of_which_nothing_is_known_are_tried() -> None:
    assert MatchingBudget(1.0, 2).choose(["b", "a"], 0.0) == ["a", "b"]


def test_of_many_those_are_chosen_that_fit_in_the_order_of_their_names() -> None:
    budget = MatchingBudget(1.0, 2)
    for name in "abcdef":
        budget.took(name, 0.2, 0.0)
    assert budget.choose("fedcba", 0.0) == ["a", "b", "c", "d", "e"]


def test_one_that_takes_too_long_is_left_out_for_longer_and_longer() -> None:
    budget, now, rests = MatchingBudget(1.0, 2), 0.0, []
    for _ in range(9):
        budget.failed("a", now)
        rest = next(seconds for seconds in range(1, 1000) if budget.choose(["a"], now + seconds) == ["a"])
        rests.append(rest)
        now += rest
    assert rests == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_one_that_is_quick_again_is_trusted_again() -> None:
    budget = MatchingBudget(1.0, 2)
    budget.failed("a", 0.0)
    budget.failed("a", 5.0)
    budget.took("a", 0.1, 15.0)
    budget.failed("a", 20.0)
    assert budget.choose(["a"], 25.0) == ["a"]


def test_nobody_waits_for_a_slow_channel_with_every_batch() -> None:
    budget, now, waited = MatchingBudget(1.0, 2), 0.0, 0
    budget.took("b", 0.1, now)
    while now < 600.0:
        chosen = budget.choose(["a", "b"], now)
        assert "b" in chosen
        waited += "a" in chosen
        if "a" in chosen:
            # In time, and yet far too slow for those that wait.
            budget.took("a", 0.9, now)
        now += 1.0
    assert waited == 7


def test_one_slow_batch_of_a_quick_channel_is_soon_forgotten() -> None:
    budget = MatchingBudget(1.0, 2)
    for _ in range(9):
        budget.took("a", 0.1, 0.0)
    budget.took("a", 0.5, 0.0)
    assert budget.choose(["a"], 0.0) == ["a"]


def test_what_is_known_of_a_channel_that_is_no_more_is_forgotten() -> None:
    budget = MatchingBudget(1.0, 2)
    budget.failed("a", 0.0)
    budget.keep(["b"])
    assert budget.choose(["a"], 0.0) == ["a"]


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), st.floats(0.0, 1.0)), st.integers(1, 4))
def test_no_more_are_chosen_than_fit_and_none_that_is_slow(seconds: dict[str, float], workers: int) -> None:
    budget = MatchingBudget(1.0, workers)
    for name, taken in seconds.items():
        budget.took(name, taken, 0.0)
    quick = sorted(name for name, taken in seconds.items() if taken <= 0.25)
    chosen = budget.choose(seconds, 0.0)
    assert chosen == quick[: len(chosen)]
    assert sum(seconds[name] for name in chosen) <= workers / 2
    assert bool(chosen) == bool(quick)

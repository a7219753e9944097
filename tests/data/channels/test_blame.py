"""Whom to set aside when an execution fails because of its data: no more than those to blame, found in few trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.channels.blame import UnclearError, Verdict, culprits, judge, try_out

Pair = tuple[int, int]


class World:
    """Subscriptions that fail by themselves, and pairs of a subscription and a record that fail together."""

    def __init__(self, hopeless: set[int], pairs: set[Pair]) -> None:
        self._hopeless, self._pairs = hopeless, pairs
        self.trials = 0

    def __call__(self, subscriptions: range, records: Sequence[int]) -> bool:
        self.trials += 1
        kept = set(records)
        failing = any(s in subscriptions and r in kept for s, r in self._pairs)
        return not failing and not any(s in subscriptions for s in self._hopeless)


def works(bad: set[int]) -> Callable[[range], bool]:
    return lambda some: not bad & set(some)


@given(st.integers(1, 300), st.data())
def test_exactly_those_that_fail_are_found_in_few_trials(count: int, data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=8))
    first = data.draw(st.integers(0, count))
    trials = 0

    def counted(some: range) -> bool:
        nonlocal trials
        trials += 1
        return works(bad)(some)

    assert culprits(range(count), counted, first) == sorted(bad)
    assert trials <= 2 * len(bad) * (math.log2(count) + 2)


def test_one_newcomer_among_a_million_is_found_at_once() -> None:
    world = World({1_000_000}, set())
    assert judge(1_000_001, 10, world, most=20, known=1_000_000).hopeless == {1_000_000}
    assert world.trials <= 3


def test_failing_only_together_is_nobody_s_fault() -> None:
    with pytest.raises(UnclearError, match="each by itself works"):
        culprits(range(8), lambda some: len(some) < 5)


@given(
    st.integers(2, 40),
    st.integers(1, 12),
    st.sets(st.integers(0, 38), max_size=3),
    st.sets(st.tuples(st.integers(0, 38), st.integers(0, 11)), max_size=4),
)
def test_everybody_else_gets_everything_and_nobody_is_blamed_for_another(
    subscriptions: int, records: int, hopeless: set[int], pairs: set[Pair]
) -> None:
    hopeless = {s for s in hopeless if s < subscriptions - 1}
    pairs = {(s, r) for s, r in pairs if s < subscriptions - 1 and r < records}
    if not hopeless and not pairs:
        return
    verdict = judge(subscriptions, records, World(hopeless, pairs), most=10_000)
    assert verdict.poison == frozenset()
    assert verdict.hopeless == hopeless
    expected = {s: frozenset(r for t, r in pairs if t == s) for s, _ in pairs if s not in hopeless}
    assert set(verdict.without) == set(expected)
    for subscription, kept_from in verdict.without.items():
        # What another one fails with may be suspected of it too, as one trial is cheaper than many.
        assert expected[subscription] <= kept_from
        assert kept_from <= {r for _, r in pairs}


def test_a_record_that_fails_for_very_many_is_set_aside_for_all() -> None:
    world = World(set(), {(s, 7) for s in range(1000)})
    assert judge(2000, 50, world, most=100) == Verdict(poison=frozenset({7}))
    assert world.trials <= 100


def test_what_fails_for_everybody_with_everything_is_left_as_it_is() -> None:
    with pytest.raises(UnclearError, match="for everybody and with every record"):
        judge(2, 3, World(set(), {(s, r) for s in range(2) for r in range(3)}), most=1000)


def test_a_hostile_crowd_cannot_make_it_try_for_ever() -> None:
    world = World(set(range(0, 10_000, 2)), set())
    with pytest.raises(UnclearError) as unclear:
        judge(10_000, 100, world, most=100)
    assert world.trials <= 100
    assert unclear.value.found, "some are found each time, so that the next attempt has fewer to look for"
    assert all(s % 2 == 0 for s in unclear.value.found)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 30), st.data())
def test_whoever_is_tried_out_is_served_or_left_out_but_never_served_what_fails(
    subscriptions: int, records: int, most: int, data: st.DataObject
) -> None:
    hopeless = data.draw(st.sets(st.integers(0, subscriptions - 1), max_size=5))
    pair = st.tuples(st.integers(0, subscriptions - 1), st.integers(0, records - 1))
    pairs = data.draw(st.sets(pair, min_size=0 if hopeless else 1, max_size=10))
    world = World(hopeless, pairs)
    failing = hopeless | {s for s, _ in pairs}
    verdict = try_out(subscriptions, records, world, most)
    assert world.trials <= max(most, subscriptions.bit_length() + 1)
    assert not verdict.poison
    assert failing <= verdict.set_apart
    assert verdict.hopeless <= (failing if verdict.untried else hopeless)
    for subscription, left_out in verdict.without.items():
        assert not {r for s, r in pairs if s == subscription} - left_out
    # Whoever is blamed has failed, and somebody always is.
    assert set() < verdict.set_apart - verdict.untried <= failing


def test_very_many_who_are_tried_out_and_fail_are_out_of_the_way_after_a_while() -> None:
    left, rounds = 1000, 0
    while left:
        verdict = try_out(left, 10, World(set(range(left)), set()), 16)
        assert verdict.hopeless or verdict.unclear
        left, rounds = len(verdict.untried), rounds + 1
    assert rounds < 300


def test_who_is_tried_out_and_fails_with_everything_costs_few_trials() -> None:
    world = World(set(), {(0, record) for record in range(1000)})
    assert try_out(1, 1000, world, 16) == Verdict(unclear={0})
    assert world.trials <= 16


def test_with_enough_trials_who_is_tried_out_loses_no_more_than_what_fails() -> None:
    assert try_out(8, 8, World({1}, {(5, 3)}), 30) == Verdict(hopeless={1}, without={5: frozenset({3})})


def test_those_who_fail_only_together_are_left_out_together() -> None:
    assert try_out(4, 0, lambda some, _: len(some) < 4, 60) == Verdict(untried={0, 1, 2, 3})

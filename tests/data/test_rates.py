"""λ is what a subscription brings per second, whatever the period of its channel and however young it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.rates import Forecast, Rates
from tocsin.data.rates.tracks import Tracks

WINDOW = 60.0


def add(rates: Rates, now: float, sizes: dict[int, int], channel: str = "c") -> None:
    rates.add(now, channel, np.array([*sizes], np.int64), np.array([*sizes.values()], np.int64))


def rate(rates: Rates, now: float, be: int = 1) -> float:
    return float(rates.rate(now, np.array([be], np.int64))[0])


@pytest.mark.parametrize("period", [6.0, 10.0, 60.0, 600.0, 86_400.0])
def test_a_steady_rate_is_right_from_the_first_execution_and_at_all_times(period: float) -> None:
    rates = Rates(WINDOW)
    rates.begin(1000.0, "c", [1])
    for execution in range(1, 50):
        now = 1000.0 + execution * period
        add(rates, now, {1: 700})
        for later in (0.0, period / 2, period):
            assert rate(rates, now + later) == pytest.approx(700 / period)


def test_many_small_executions_are_as_good_as_few_large_ones() -> None:
    rates = Rates(WINDOW)
    rates.begin(0.0, "c", [1])
    for execution in range(1, 6001):
        add(rates, execution / 10, {1: 50})
    assert rate(rates, 600.0) == pytest.approx(500.0)


def test_a_subscription_that_joins_a_running_channel_is_right_at_once() -> None:
    rates = Rates(WINDOW)
    for execution in range(1, 20):
        add(rates, execution * 10.0, {1: 100})
    rates.begin(193.0, "c", [2])
    add(rates, 200.0, {1: 100, 2: 3000})
    assert rate(rates, 200.0, 2) == pytest.approx(300.0)
    add(rates, 210.0, {1: 100})
    assert 100.0 < rate(rates, 210.0, 2) < 200.0


def test_one_early_result_is_no_peak() -> None:
    rates = Rates(WINDOW)
    rates.begin(0.0, "c", [1])
    add(rates, 0.001, {1: 1000})
    # As if it were the only one in a tenth of a window.
    assert rate(rates, 0.001) == pytest.approx(1000 / 6.0, rel=0.1)


def test_one_that_nobody_announced_is_never_off_by_much_for_longer_than_a_window() -> None:
    rates = Rates(WINDOW)
    for execution in range(1, 100):
        add(rates, execution * 10.0, {1: 100})
    found = []
    for execution in range(100, 130):
        add(rates, execution * 10.0, {1: 100, 2: 1000})
        found.append(rate(rates, execution * 10.0, 2))
    assert found == sorted(found)
    assert found[0] > 10.0
    assert found[5] > 60.0
    assert found[-1] == pytest.approx(100.0, rel=0.01)


def test_the_first_execution_of_an_unknown_channel_stands_for_one_window() -> None:
    rates = Rates(WINDOW)
    add(rates, 5.0, {1: 600, 2: 60})
    assert rate(rates, 5.0, 1) == pytest.approx(10.0)
    assert rate(rates, 5.0, 2) == pytest.approx(1.0)


def test_a_rate_fades_when_nothing_is_found_and_when_executions_fail_to_come() -> None:
    fed, starved = Rates(WINDOW), Rates(WINDOW)
    for rates in (fed, starved):
        rates.begin(-1e6, "c", [1])
        add(rates, 0.0, {1: 0})
        add(rates, 10.0, {1: 1000})
    peak = rate(fed, 10.0)
    for execution in range(2, 20):
        add(fed, execution * 10.0, {})
    assert rate(fed, 190.0) == pytest.approx(peak * math.exp(-3))
    assert rate(starved, 20.0) == pytest.approx(peak)
    assert rate(starved, 20.0 + 180.0) == pytest.approx(peak * math.exp(-3))


executions = st.lists(
    st.tuples(st.floats(0.01, 300.0), st.dictionaries(st.integers(1, 5), st.integers(0, 10_000))), min_size=1
)


def integral(ends: Sequence[float], sizes: Sequence[int]) -> float:
    """The weighted average of the step function, by its definition."""
    now, begun = ends[-1], ends[0]
    total = sum(
        size / (end - start) * (math.exp((end - now) / WINDOW) - math.exp((start - now) / WINDOW))
        for (start, end), size in zip(pairwise(ends), sizes, strict=True)
    )
    return total / -math.expm1(-max((now - begun) / WINDOW, 0.1))


@given(executions)
def test_the_rate_is_the_average_of_what_each_interval_brought(history: list[tuple[float, dict[int, int]]]) -> None:
    rates = Rates(WINDOW)
    rates.begin(100.0, "c", range(1, 6))
    ends = [100.0]
    for wait, sizes in history:
        ends.append(ends[-1] + wait)
        add(rates, ends[-1], sizes)
    for be in range(1, 6):
        expected = integral(ends, [sizes.get(be, 0) for _, sizes in history])
        assert rate(rates, ends[-1], be) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(executions)
def test_subscriptions_do_not_depend_on_each_other(history: list[tuple[float, dict[int, int]]]) -> None:
    together, apart = Rates(WINDOW), Rates(WINDOW)
    now = 0.0
    for wait, sizes in history:
        now += wait
        add(together, now, sizes)
        for channel in range(1, 6):
            found = {be: size for be, size in sizes.items() if be == channel}
            add(apart, now, found, f"c{channel}")
    bes = np.array([5, 3, 1, 2, 4, 99])
    np.testing.assert_allclose(together.rate(now, bes), apart.rate(now, bes))
    assert together.rate(now, bes)[-1] == 0.0


def test_the_same_subscription_told_twice_in_one_execution_counts_twice() -> None:
    rates = Rates(WINDOW)
    rates.begin(0.0, "c", [1])
    rates.add(10.0, "c", np.array([1, 1]), np.array([100, 200]))
    assert rate(rates, 10.0) == pytest.approx(30.0)


def test_executions_at_the_same_moment_or_before_lose_nothing() -> None:
    rates = Rates(WINDOW)
    rates.begin(0.0, "c", [1])
    add(rates, 60.0, {1: 600})
    once = rate(rates, 60.0)
    add(rates, 60.0, {1: 600})
    add(rates, 50.0, {1: 600})
    assert rate(rates, 60.0) > 2 * once


def test_announcing_again_what_is_known_changes_nothing() -> None:
    rates = Rates(WINDOW)
    rates.begin(0.0, "c", [1])
    add(rates, 10.0, {1: 1000})
    rates.begin(15.0, "c", [1, 2])
    assert rate(rates, 15.0) == pytest.approx(100.0)
    assert rate(rates, 15.0, 2) == 0.0


def test_what_is_forgotten_has_no_rate() -> None:
    rates = Rates(WINDOW)
    rates.begin(0.0, "c", [1, 2, 3])
    add(rates, 10.0, {1: 1000, 2: 1000, 3: 1000})
    rates.forget([1, 3, 77])
    assert rates.rate(10.0, np.array([3, 2, 1])).tolist() == [0.0, pytest.approx(100.0), 0.0]


def test_a_dropped_channel_begins_anew() -> None:
    rates = Rates(WINDOW)
    rates.begin(0.0, "c", [1])
    add(rates, 10.0, {1: 1000})
    rates.drop("C")
    assert rate(rates, 10.0) == 0.0
    rates.begin(500.0, "c", [2])
    add(rates, 510.0, {2: 1000})
    assert rate(rates, 510.0, 2) == pytest.approx(100.0)


def test_memory_is_for_those_that_had_something_lately() -> None:
    rates = Rates(WINDOW)
    for execution in range(1, 1000):
        rates.begin(execution * 60.0, "c", [execution])
        add(rates, execution * 60.0, {execution: 100})
        assert len(rates._tracks.ids) <= 42
    add(rates, 3600.0, {1_000_000: 3600}, "seldom")
    add(rates, 2 * 86_400.0, {}, "c")
    assert rates._tracks.ids.tolist() == [1_000_000]


def test_a_million_that_come_and_go_one_by_one_wait_until_they_matter() -> None:
    tracks = Tracks()
    for be in range(10_000):
        tracks.begin(np.array([be]), 0, 1.0)
        tracks.forget(np.array([be]))
    assert len(tracks.ids) < 10
    found, places = tracks.find(np.arange(10_000))
    assert not found.any()
    assert len(places) == 0


def test_brokers_are_told_what_stands_until_the_next_execution_is_due() -> None:
    rates = Rates(WINDOW)
    rates.begin(0.0, "c", [1, 2])
    add(rates, 10.0, {1: 1000})
    assert rates.forecast(10.0, "C", np.array([2, 1])) == Forecast([0.0, 100.0], 10.0)
    assert rates.forecast(14.0, "c", np.array([1])) == Forecast([100.0], 6.0)
    assert rates.forecast(80.0, "c", np.array([1])) == Forecast([round(100.0 * math.exp(-1), 2)], 0.0)
    assert (rates.due(14.0, "c"), rates.due(14.0, "unknown")) == (6.0, 0.0)


def test_what_was_not_executed_yet_is_not_known() -> None:
    rates = Rates(WINDOW)
    assert rates.forecast(0.0, "c", np.array([1])) == Forecast([None], 0.0)
    rates.begin(0.0, "c", [1])
    assert rates.forecast(5.0, "c", np.array([1])) == Forecast([None], 0.0)
    add(rates, 10.0, {1: 1000})
    rates.begin(12.0, "c", [2])
    assert rates.forecast(12.0, "c", np.array([1, 2, 3])) == Forecast([100.0, None, None], 8.0)
    add(rates, 20.0, {1: 1000})
    assert rates.forecast(20.0, "c", np.array([1, 2])) == Forecast([100.0, 0.0], 10.0)


def test_what_was_found_for_the_time_of_a_restart_is_spread_over_it() -> None:
    rates = Rates(WINDOW)
    rates.resume("c", 1000.0)
    rates.begin(1600.0, "c", [1])
    assert rates.forecast(1600.0, "c", np.array([1])) == Forecast([None], 0.0)
    add(rates, 1603.0, {1: 60_300})
    assert rate(rates, 1603.0) == pytest.approx(100.0)
    rates.resume("c", 1700.0)
    add(rates, 1613.0, {1: 1000})
    assert rate(rates, 1613.0) == pytest.approx(100.0)

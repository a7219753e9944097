"""Rates: how they are measured, how they are heard of, and which of them a broker reports."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.broker.accounting import DataRate, Meter, RateChanges, Traffic
from tocsin.data.rates import Rates

SPAN = 60.0


def test_what_comes_at_any_time_is_averaged_over_the_span_and_fades() -> None:
    meter = Meter(10.0, 0.0)
    for second in range(200):
        meter.add(float(second), 50.0)
    assert meter.rate(199.0) == pytest.approx(50.0, rel=0.1)
    assert meter.rate(400.0) < 0.01


@pytest.mark.parametrize("period", [6.0, 10.0, 60.0, 600.0, 86_400.0])
def test_a_steady_load_is_right_from_the_first_execution_and_at_all_times(period: float) -> None:
    traffic = Traffic(SPAN)
    traffic.begin(1000.0)
    for execution in range(1, 50):
        now = 1000.0 + execution * period
        traffic.receive(now, 700, "c", period)
        traffic.send(now, 2100, "c", period)
        for later in (0.0, period / 2, period):
            assert traffic.rates(now + later) == pytest.approx((700 / period, 2100 / period))


def test_a_broker_that_was_started_again_is_not_taken_for_empty() -> None:
    traffic = Traffic(SPAN)
    traffic.begin(5000.0)
    traffic.receive(5003.0, 6000, "c", 10.0)
    assert traffic.rates(5003.0)[0] == pytest.approx(600.0)


@given(st.lists(st.tuples(st.floats(0.5, 200.0), st.integers(0, 10_000)), min_size=1, max_size=30))
def test_what_a_broker_measures_is_what_the_data_cluster_does(history: list[tuple[float, int]]) -> None:
    """One line, one subscriber: I is λ, as long as every execution finds something."""
    rates, traffic, now = Rates(SPAN), Traffic(SPAN), 100.0
    rates.begin(now, "c", [1])
    traffic.begin(now)
    for wait, size in history:
        now += wait
        rates.add(now, "c", np.array([1]), np.array([size]))
        traffic.receive(now, size, "c", wait)
        for later in (0.0, wait, 3 * wait):
            expected = float(rates.rate(now + later, np.array([1]))[0])
            assert traffic.rates(now + later)[0] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_channels_of_different_periods_are_measured_each_by_itself() -> None:
    traffic = Traffic(SPAN)
    traffic.begin(0.0)
    for second in range(10, 1210, 10):
        traffic.receive(float(second), 1000, "often", 10.0)
        if second % 600 == 0:
            traffic.receive(float(second), 60_000, "seldom", 600.0)
    assert traffic.rates(1200.0)[0] == pytest.approx(200.0)
    assert traffic.rates(1205.0)[0] == pytest.approx(200.0)


def test_what_is_for_those_behind_counts_when_it_comes() -> None:
    traffic = Traffic(SPAN)
    traffic.begin(0.0)
    traffic.receive(600.0, 6000)
    traffic.send(600.0, 12_000)
    assert traffic.rates(600.0) == pytest.approx((100.0, 200.0), rel=0.01)
    assert traffic.rates(660.0) == pytest.approx((100.0 * exp(-1), 200.0 * exp(-1)), rel=0.01)
    assert (traffic.received, traffic.sent) == (6000, 12_000)


def test_of_channels_that_bring_nothing_any_more_nothing_is_kept() -> None:
    traffic = Traffic(SPAN)
    for number in range(1000):
        traffic.receive(number * 600.0, 1000, f"c{number}", 10.0)
    assert len(traffic._incoming) < 5


def test_a_rate_stands_for_as_long_as_was_said_and_then_fades() -> None:
    rate = DataRate(SPAN)
    rate.hear(100.0, 600.0, 10.0)
    assert rate.at(100.0) == rate.at(110.0) == 600.0
    assert rate.at(170.0) == pytest.approx(600.0 * exp(-1))
    rate.hear(200.0, 300.0, 10.0)
    assert rate.at(200.0) == 300.0


def test_what_an_execution_found_nothing_for_fades_as_the_data_cluster_has_it() -> None:
    rates, rate = Rates(SPAN), DataRate(SPAN)
    rates.begin(-1e6, "c", [1])
    rates.add(0.0, "c", np.array([1]), np.array([0]))
    rates.add(3600.0, "c", np.array([1]), np.array([36_000]))
    rate.hear(3600.0, 10.0, 3600.0)
    for now in (3601.0, 3602.0, 3650.0):
        rates.add(now, "c", np.empty(0, np.int64), np.empty(0, np.int64))
    for later in (3650.0, 3690.0, 3800.0):
        expected = float(rates.rate(later, np.array([1]))[0])
        assert rate.at(later, 3650.0, 48.0) == pytest.approx(expected, rel=0.01)


def test_a_rate_is_said_again_only_when_it_has_changed_by_much() -> None:
    changes = RateChanges(tolerance=0.1)
    assert changes.take({1: 100.0, 2: 50.0}, {1, 2}) == {1: 100.0, 2: 50.0}
    assert changes.take({1: 105.0, 2: 60.0}, {1, 2}) == {2: 60.0}


def test_a_rate_that_has_faded_is_said_to_be_none_once() -> None:
    changes = RateChanges()
    changes.take({1: 100.0}, {1})
    assert changes.take({}, {1}) == {1: 0.0}
    assert changes.take({}, {1}) == {}


def test_of_what_is_no_longer_held_nothing_is_said_since_others_may_hold_it() -> None:
    changes = RateChanges()
    changes.take({1: 100.0}, {1})
    assert changes.take({}, set()) == {}
    assert changes.take({1: 100.0}, {1}) == {1: 100.0}


def test_whoever_may_know_nothing_is_told_everything() -> None:
    changes = RateChanges()
    changes.take({1: 10.0, 2: 0.0}, {1, 2})
    changes.forget()
    assert changes.take({1: 10.0, 2: 0.0}, {1, 2}) == {1: 10.0}

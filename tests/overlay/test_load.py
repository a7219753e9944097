"""The figures of a load: definitions, and equations 1 and 4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.overlay.loads import LOADS
from tocsin.overlay.load import BrokerLoad, Metric, Metrics, Resource, average


def test_the_ratios_are_those_of_the_paper() -> None:
    load = BrokerLoad(20.0, 0.01, 300.0, 1200.0, 40, cpu=0.3, memory=16.0, memory_bytes=64.0)
    assert load.input_ratio == pytest.approx(20.0 / (1 / 0.01))
    assert load.metrics == pytest.approx((0.2, 0.25, 0.01))
    assert load.ratios == {
        Resource.INPUT: pytest.approx(0.2),
        Resource.OUTPUT: 0.25,
        Resource.CPU: 0.3,
        Resource.MEMORY: 0.25,
    }


def test_a_difference_of_delays_is_normalised() -> None:
    assert Metrics(0, 0, 0.03).difference(Metric.DELAY, Metrics(0, 0, 0.01), 0.1) == pytest.approx(0.2)
    assert Metrics(0.5, 0.2, 0).difference(Metric.INPUT, Metrics(0.1, 0.9, 0), 0.1) == pytest.approx(0.4)
    assert Metrics(0.5, 0.2, 0).largest_difference(Metrics(0.1, 0.9, 0), 0.1) == pytest.approx(0.7)


def test_a_cluster_has_the_average_of_its_edges() -> None:
    assert average([Metrics(0.2, 0.4, 0.01), Metrics(0.4, 0.0, 0.03)]) == pytest.approx((0.3, 0.2, 0.02))


def test_the_delay_grows_with_the_subscriptions() -> None:
    load = BrokerLoad(10.0, 0.02, 100.0, 1000.0, 50, cpu=0.5, memory=100.0, memory_bytes=1000.0, subscription_bytes=2.0)
    after = load.change(5.0, 200.0, 25)
    assert after.matching_seconds == pytest.approx(0.02 * 75 / 50)
    assert after.input_ratio == pytest.approx(15 * 0.03)
    assert (after.output_ratio, after.subscriptions, after.memory) == (0.3, 75, 150.0)
    assert after.cpu == pytest.approx(0.5 + 15 * 0.03 - 10 * 0.02)


def test_a_broker_without_subscriptions_counts_as_having_one() -> None:
    empty = BrokerLoad(0.0, 0.001, 0.0, 1000.0, 0)
    assert empty.change(10.0, 0.0, 200).matching_seconds == pytest.approx(0.2)
    assert empty.change(10.0, 0.0, 200).change(-10.0, 0.0, -200).matching_seconds == pytest.approx(0.001)


def test_a_processor_that_had_more_than_it_could_do_is_not_relieved_by_what_it_could_not_do() -> None:
    load = BrokerLoad(30.0, 0.1, 0.0, 1.0, 10, cpu=1.0)
    assert load.change(-15.0, 0.0, 0).cpu == 1.0
    assert load.change(-25.0, 0.0, 0).cpu == pytest.approx(0.5)


@given(LOADS, st.floats(0, 50), st.integers(0, 100))
def test_what_comes_and_goes_again_leaves_the_load_as_it_was(load: BrokerLoad, incoming: float, number: int) -> None:
    after = load.change(incoming, 100.0, number).change(-incoming, -100.0, -number)
    assert after.metrics == pytest.approx(load.metrics, abs=1e-9)
    assert after.subscriptions == load.subscriptions

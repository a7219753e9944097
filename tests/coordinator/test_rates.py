"""Rates that the coordinator knows: also of what nobody holds at the moment, but not of everything that ever was."""

from __future__ import annotations

from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.coordinator import workload
from tocsin.coordinator.store.records import BrokerRecord
from tocsin.coordinator.workload import NamedWorkload, whole_rate


@pytest.fixture
def known() -> NamedWorkload:
    known = NamedWorkload()
    known.open(BrokerRecord("a", "ws://a"))
    known.seat("ann", "a", [7])
    return known


def test_a_rate_is_kept_while_nobody_holds_its_subscription(known: NamedWorkload) -> None:
    known.rate({7: 600.0, 8: 300.0})
    known.drop("ann", 7)
    assert (known.rate_of(7), known.planned_load("a")[0]) == (600, 0.0)
    known.rate({7: 500.0})
    known.hold("ann", 7)
    known.hold("ann", 8)
    assert (known.rate_of(7), known.rate_of(8), known.planned_load("a")[0]) == (500, 300, 1600.0)


def test_of_too_many_that_nobody_holds_the_oldest_are_forgotten(
    known: NamedWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "MOST_UNHELD", 3)
    known.rate({7: 600.0})
    for subscription in range(10, 20):
        known.rate({subscription: 100.0})
    assert [known.rate_of(each) for each in (7, 10, 16, 17, 18, 19)] == [600, 0, 0, 100, 100, 100]
    known.rate({17: 0.0})
    known.drop("ann", 7)
    assert [known.rate_of(each) for each in (17, 18, 19, 7)] == [0, 100, 100, 600]


def test_an_impossible_rate_is_passed_over(known: NamedWorkload) -> None:
    known.rate({7: 600.0})
    known.rate({7: -1.0, 8: 1e300, 9: float("nan")})
    assert [known.rate_of(each) for each in (7, 8, 9)] == [600, 0, 0]


@given(first=st.integers(0, 2**62), rate=st.floats(0, 1000))
def test_a_thousand_that_bring_next_to_nothing_weigh_what_they_bring(first: int, rate: float) -> None:
    rates = [whole_rate(each, rate) for each in range(first, first + 1000)]
    assert set(rates) <= {floor(rate), ceil(rate)}
    assert sum(rates) == pytest.approx(1000 * rate, abs=10)


def test_what_hourly_channels_bring_is_planned_with(known: NamedWorkload) -> None:
    for subscription in range(100, 1100):
        known.hold("ann", subscription)
    known.rate(dict.fromkeys(range(100, 1100), 0.3))
    assert known.planned_load("a")[0] == pytest.approx(600, rel=0.02)

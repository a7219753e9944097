"""Where newcomers are placed, as the coordinator knows their brokers' loads."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.coordinator.manual import ManualCoordinator
from tocsin.model.coordination import Load


@pytest.mark.parametrize("rates", [{"a": 100.0, "b": 200.0, "c": 300.0}, {}])
def test_newcomers_without_load_are_spread_over_all_brokers(rates: dict[str, float]) -> None:
    coordinator = ManualCoordinator(placement="two-choices")
    for broker in "abc":
        coordinator.hello(broker)
    for number in range(12):
        at = coordinator.settle(f"first{number}", number).broker
        assert at is not None
        coordinator.say(at, Load(0.0, 0.0, {number: rates.get(at, 0.0)}))
    came = Counter(coordinator.settle(f"p{number}", 100 + number % 7).broker for number in range(60))
    assert sum(came.values()) == 60
    assert min(came[broker] for broker in "abc") >= 10

"""What an edge knows of its own load, by what its driver measures."""

from __future__ import annotations

import pytest

from tocsin.overlay.events import Gauged
from tocsin.overlay.gauges import Gauges


def test_publications_count_when_they_are_matched_if_the_driver_does_not_see_them_before() -> None:
    gauges = Gauges(30.0)
    gauges.measure(0.0, Gauged(0.1, 1000.0))
    for second in range(100):
        gauges.count(float(second), 500)
    load = gauges.load(99.0, 3)
    assert load
    assert load.input_ratio == pytest.approx(0.1, rel=0.05)
    assert load.output_ratio == pytest.approx(0.5, rel=0.05)
    assert gauges.arrivals(99.0, 5.0) is None


def test_an_edge_that_matches_less_than_comes_knows_what_comes() -> None:
    gauges = Gauges(30.0)
    for second in range(200):
        gauges.measure(float(second), Gauged(0.5, 1000.0, input_seconds=60.0, arrived=8 if second else 0))
        gauges.count(float(second), 100)
        gauges.count(second + 0.5, 100)
    load = gauges.load(199.5, 3)
    assert load
    assert load.input_ratio == pytest.approx(4.0, rel=0.02)
    assert gauges.arrivals(199.5, 5.0) == pytest.approx(8.0, rel=0.02)
    # What was sampled for longer than the queue is long tells as much.
    assert gauges.arrivals(199.5, 61.0) is None


def test_what_the_driver_has_sent_counts_in_place_of_what_publications_are_sent_to() -> None:
    gauges = Gauges(30.0)
    for second in range(200):
        gauges.measure(float(second), Gauged(0.1, 1000.0, sent=800 if second else 0))
        gauges.count(float(second), 500)
    load = gauges.load(199.0, 3)
    assert load
    assert load.output_ratio == pytest.approx(0.8, rel=0.02)

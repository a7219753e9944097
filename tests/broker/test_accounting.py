"""Rates: how they are measured, and which of them a broker reports."""

from __future__ import annotations

import pytest

from tocsin.broker.accounting import Changes, Meter


def test_a_rate_is_the_bytes_of_the_span_and_fades() -> None:
    meter = Meter(10.0)
    for second in range(200):
        meter.add(float(second), 50.0)
    assert meter.rate(199.0) == pytest.approx(50.0, rel=0.1)
    assert meter.rate(400.0) < 0.01


def test_a_rate_is_said_again_only_when_it_has_changed_by_much() -> None:
    changes = Changes(tolerance=0.1)
    assert changes.take({1: 100.0, 2: 50.0}, {1, 2}) == {1: 100.0, 2: 50.0}
    assert changes.take({1: 105.0, 2: 60.0}, {1, 2}) == {2: 60.0}


def test_a_rate_that_has_faded_is_said_to_be_none_once() -> None:
    changes = Changes()
    changes.take({1: 100.0}, {1})
    assert changes.take({}, {1}) == {1: 0.0}
    assert changes.take({}, {1}) == {}


def test_of_what_is_no_longer_held_nothing_is_said_since_others_may_hold_it() -> None:
    changes = Changes()
    changes.take({1: 100.0}, {1})
    assert changes.take({}, set()) == {}
    assert changes.take({1: 100.0}, {1}) == {1: 100.0}


def test_whoever_may_know_nothing_is_told_everything() -> None:
    changes = Changes()
    changes.take({1: 10.0, 2: 0.0}, {1, 2})
    changes.forget()
    assert changes.take({1: 10.0, 2: 0.0}, {1, 2}) == {1: 10.0}

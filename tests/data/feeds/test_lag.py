"""The lag of a feed: how long the oldest record that was not read has waited."""

from __future__ import annotations

from tocsin.data.feeds.lag import Lag


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def observed(steps: list[tuple[float, int, int]]) -> float:
    clock = Clock()
    lag = Lag(clock)
    for now, length, read in steps:
        clock.now = now
        lag.observe(length, read)
    return lag.seconds()


def test_what_arrives_at_an_idle_feed_has_not_waited_since_it_was_idle() -> None:
    assert observed([(0, 10, 10), (3600, 10, 10), (3601, 20, 10)]) == 1


def test_a_feed_that_keeps_up_has_a_small_lag_though_something_always_waits() -> None:
    assert observed([(second, 10 * second, 10 * (second - 1)) for second in range(1, 1000)]) == 1


def test_a_feed_that_stands_still_falls_behind() -> None:
    assert observed([(second, 10 * second, 10) for second in range(1, 100)]) == 98


def test_a_feed_that_was_never_read_counts_from_when_it_was_first_looked_at() -> None:
    assert observed([(5, 30, 0), (6, 30, 0), (9, 30, 0)]) == 4

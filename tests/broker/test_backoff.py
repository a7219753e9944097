"""When a peer is dialled again."""

from __future__ import annotations

from random import Random

from tocsin.broker.backoff import FIRST, LONGEST, STEADY, Backoff


def test_waits_grow_while_no_connection_lasts_even_if_each_is_let_in() -> None:
    backoff = Backoff(Random(1))
    waits = [backoff.after(lasted=0.01) for _ in range(20)]
    assert waits[0] <= FIRST
    assert all(LONGEST / 2 <= wait <= LONGEST for wait in waits[6:])


def test_a_connection_that_has_lasted_makes_waits_short_again() -> None:
    backoff = Backoff(Random(1))
    for _ in range(20):
        backoff.after(lasted=0)
    assert backoff.after(lasted=STEADY) <= FIRST
    assert backoff.after(lasted=0) <= 2 * FIRST


def test_two_brokers_do_not_wait_for_the_same_time() -> None:
    assert Backoff(Random(1)).after(0) != Backoff(Random(2)).after(0)

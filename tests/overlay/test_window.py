"""How many pieces are on their way to an edge."""

from __future__ import annotations

from math import inf

from tocsin.overlay.window import FetchWindow


def test_it_is_open_until_so_many_answers_are_to_come() -> None:
    window = FetchWindow(3, 5.0)
    window.begin("a", ["h", "far"], [1, 2], 0.0)
    assert (window.is_open, window.awaited) == (True, 2)
    window.begin("b", ["h", "far"], [3], 0.0)
    assert (window.is_open, window.awaited) == (False, 4)
    assert window.answer("a", "h") == frozenset()
    assert (window.is_open, window.is_for(1)) == (False, True)
    assert window.answer("a", "far") == {1, 2}
    assert (window.is_open, window.is_for(1), window.is_for(3)) == (True, False, True)


def test_an_answer_that_was_not_asked_for_or_comes_twice_counts_for_nothing() -> None:
    window = FetchWindow(1, 5.0)
    window.begin("a", ["h", "far"], [1], 0.0)
    for _ in range(2):
        assert window.answer("a", "h") == window.answer("b", "h") == window.answer("a", "other") == frozenset()
    assert not window.is_open


def test_what_takes_too_long_is_given_up() -> None:
    window = FetchWindow(1, 5.0)
    assert window.wake() == inf
    window.begin("a", ["h"], [1], 0.0)
    window.begin("b", ["h"], [2], 1.0)
    assert window.wake() == 5.0
    assert window.expire(4.9) == frozenset()
    assert window.expire(5.0) == {1}
    assert (window.wake(), window.is_for(1), window.is_for(2)) == (6.0, False, True)


def test_a_fetch_that_nobody_will_answer_is_not_waited_for() -> None:
    window = FetchWindow(1, 5.0)
    window.begin("a", [], [1], 0.0)
    assert (window.is_open, window.is_for(1)) == (True, False)

"""Cursors in a history: what a restart, a restored copy and a drop leave of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.model.histories import DROPPED, Cursor, Era, common_execution, knows, resolve, since

FIRST = [Era("created", 0)]
RESTARTED = [*FIRST, Era("second start", 7)]
RESTORED = [*FIRST, Era("restored", 3)]


def test_under_the_present_incarnation_a_cursor_is_what_it_is() -> None:
    assert resolve(RESTARTED, Cursor(9, "second start")) == 9


def test_an_ordinary_restart_changes_no_cursor() -> None:
    assert resolve(RESTARTED, Cursor(5, "created")) == 5
    assert resolve(RESTARTED, Cursor(7, "created")) == 7


def test_what_a_restored_copy_never_had_is_taken_back() -> None:
    assert resolve(RESTORED, Cursor(5, "created")) == 3
    assert resolve(RESTORED, Cursor(2, "created")) == 2


def test_of_an_incarnation_that_nobody_knows_nothing_counts() -> None:
    assert resolve(RESTORED, Cursor(5, "second start")) == 0
    assert not knows(RESTORED, "second start")


def test_who_knows_what_was_before_goes_back_only_to_what_both_have_in_common() -> None:
    assert common_execution(RESTORED, "second start", RESTARTED) == 3
    assert common_execution([*FIRST, Era("restored again", 5)], "restored", RESTORED) == 3


def test_a_dropped_channel_shares_nothing_with_the_next_of_its_name() -> None:
    created_anew = [*FIRST, Era("created anew", DROPPED), Era("third start", 4)]
    assert resolve(created_anew, Cursor(5, "created")) == DROPPED
    assert resolve(created_anew, Cursor(5, "created anew")) == 4


def test_a_history_is_told_from_where_it_is_known() -> None:
    assert since(RESTARTED, "second start") == RESTARTED[1:]
    assert since(RESTARTED, "created") == since(RESTARTED, "nobody's") == RESTARTED


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), min_size=1, max_size=8), st.integers(0, 60))
def test_a_cursor_is_never_ahead_of_what_is_the_same(lives: list[tuple[int, int]], cursor: int) -> None:
    """Each life goes back to a copy, and executes some; every number is told by the life that counted it."""
    history, counted = [Era("0", 0)], ["0"] * lives[0][1]
    for number, (kept, more) in enumerate(lives[1:], 1):
        told = list(counted)
        del counted[max(0, len(counted) - kept) :]
        history.append(Era(str(number), len(counted)))
        counted += [str(number)] * more
        had = min(cursor, len(told))
        place = resolve(history, Cursor(had, str(number - 1)))
        assert told[:place] == counted[:place]
        assert place == had or told[place : place + 1] != counted[place : place + 1] or place == history[-1].began

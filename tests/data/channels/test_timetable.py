"""When channels run: at the multiples of their periods, never twice for one, and again after failures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.channels.timetable import State, Timetable

EPOCH = 1.7e9

periods = st.one_of(
    st.integers(1, 5000).map(lambda ms: ms / 1000), st.sampled_from([0.001, 0.1, 0.3, 1.0, 10.0, 3600.0])
)
moments = st.floats(0, 1e5).map(lambda seconds: EPOCH + seconds)
# How long an execution takes, and how late the runner looks, in periods.
durations = st.lists(st.tuples(st.floats(0, 3.5), st.floats(0, 1.5)), min_size=1, max_size=30)


def timetable(retry: float = 5, longest: float = 60) -> Timetable:
    return Timetable(retry, longest)


@given(periods, moments, durations)
def test_a_repetitive_channel_runs_at_multiples_of_its_period_and_counts_what_it_missed(
    period: float, begin: float, runs: list[tuple[float, float]]
) -> None:
    table = timetable()
    table.add("c", period, begin)
    now, turns, missed = begin, [], 0
    for taken, late in runs:
        due = table["c"].due
        assert due >= now - 1e-6, "it is never due in the past"
        assert due - now <= period * (1 + 1e-6) + 1e-6, "it is due within a period"
        turn = round(due / period)
        assert abs(due - turn * period) <= 1e-6 * max(1, period), "it does not drift"
        turns.append(turn)
        now = max(due, now) + late * period
        assert table.due(now) == ["c"]
        assert table.due(now) == []
        now += taken * period
        missed += table.note_success("c", now)
    assert turns == sorted(set(turns)), "it never runs twice for one turn"
    assert missed == table["c"].missed
    # Each turn from the first on was taken or missed.
    following = round(table["c"].due / period)
    assert following - turns[0] == len(turns) + missed


@given(periods, moments)
def test_channels_of_one_period_are_due_together_whenever_they_were_added(period: float, begin: float) -> None:
    table = timetable()
    table.add("a", period, begin)
    table.add("b", period, math.floor(begin / period) * period)
    assert table["a"].due == pytest.approx(table["b"].due, abs=period * 1.001)
    now = max(table["a"].due, table["b"].due)
    table.due(now)
    table.note_success("a", now)
    table.note_success("b", now)
    assert table["a"].due == table["b"].due


def test_a_run_longer_than_its_period_delays_the_next_and_is_counted() -> None:
    table = timetable()
    table.add("c", 10, 1003)
    assert table.next() == 1010
    assert table.due(1009.9) == []
    assert table.due(1010) == ["c"]
    assert table.next() == math.inf
    assert table.note_success("c", 1034) == 2
    assert (table.next(), table["c"].missed) == (1040, 2)
    table.due(1040)
    assert table.note_success("c", 1041) == 0


def test_a_continuous_channel_runs_at_once_and_then_when_there_is_news() -> None:
    table = timetable()
    table.add("c", None, 100)
    assert table.due(100) == ["c"]
    assert table.note_success("c", 101) == 0
    assert table.next() == math.inf
    table.poke("c", 105)
    assert table.next() == 105
    assert table.due(105) == ["c"]


def test_news_during_a_run_let_it_run_again_once() -> None:
    table = timetable()
    table.add("c", None, 100)
    table.due(100)
    table.poke("c", 101)
    table.poke("c", 102)
    assert table.due(102) == []
    table.note_success("c", 103)
    assert table.due(103) == ["c"]
    table.note_success("c", 104)
    assert table.next() == math.inf


@given(st.floats(0.1, 100), st.floats(1, 50), st.integers(1, 100))
def test_the_wait_after_a_failure_doubles_up_to_its_bound(retry: float, factor: float, failures: int) -> None:
    table = timetable(retry, retry * factor)
    table.add("c", None, 0)
    now = 0.0
    for number in range(failures):
        assert table.due(now) == ["c"]
        again = table.note_failure("c", "division by zero", now)
        assert again - now == pytest.approx(min(retry * 2**number, retry * factor), abs=1e-6 * now + 1e-9)
        assert (table["c"].state, table["c"].error) == (State.FAILING, "division by zero")
        assert table.next() == again
        now = again
    table.due(now)
    table.note_success("c", now)
    assert (table["c"].state, table["c"].error) == (State.WAITING, "")
    table.poke("c", now)
    table.due(now)
    assert table.note_failure("c", "again", now) == pytest.approx(now + retry), "success ends the doubling"


def test_people_are_told_of_a_failure_when_it_lasts_and_then_ever_less_often() -> None:
    table = timetable(retry=5)
    table.add("c", None, 100)
    told = []
    for number in range(1, 20):
        table.note_failure("c", "no", 100)
        if table.lasting("c"):
            told.append(number)
    assert told == [2, 4, 8, 16]
    assert not table.lasting("unknown")


def test_news_do_not_shorten_the_wait_of_a_failing_channel() -> None:
    table = timetable(retry=5)
    table.add("c", None, 100)
    table.due(100)
    table.note_failure("c", "no", 100)
    table.poke("c", 101)
    assert table.due(104.9) == []
    assert table.due(105) == ["c"]
    table.note_success("c", 106)
    assert table.next() == math.inf, "the run after the failure has seen the news"


def test_a_repetitive_channel_that_recovers_is_back_at_its_multiples() -> None:
    table = timetable(retry=5)
    table.add("c", 10, 1000)
    table.due(1010)
    table.note_failure("c", "no", 1012)
    assert table.due(1017) == ["c"]
    assert table.note_success("c", 1018) == 0
    assert table.next() == 1020


def test_a_held_channel_does_not_run_and_then_catches_up() -> None:
    table = timetable()
    table.add("c", None, 100)
    table["c"].held = True
    assert (table.due(100), table.next()) == ([], math.inf)
    table.poke("c", 101)
    table["c"].held = False
    assert table.due(101) == ["c"]


def test_a_channel_that_was_removed_while_it_ran_is_forgotten() -> None:
    table = timetable()
    table.add("c", 10, 0)
    table.due(10)
    table.remove("c")
    assert (table.note_success("c", 12), table.note_failure("c", "no", 12), table.find("c")) == (0, math.inf, None)
    assert table.next() == math.inf


def test_what_took_too_long_waits_longer_and_a_full_disk_never_long() -> None:
    table = timetable(retry=5, longest=60)
    table.add("c", None, EPOCH)
    assert table.note_failure("c", "it took 120 s", EPOCH, at_least=120) == EPOCH + 120
    for _ in range(9):
        assert table.note_failure("c", "the disk is full", EPOCH, at_most=5) == EPOCH + 5
    assert table.note_failure("c", "division by zero", EPOCH) == EPOCH + 60

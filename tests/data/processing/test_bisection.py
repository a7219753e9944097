"""Who is at fault is found by halving: all others are taken, in order, and it ends in a time that is known before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.processing.bisection import Patience, TriedPart, try_parts
from tocsin.data.processing.contract import FunctionFaultError


class Trial:
    """A function that fails on some records, at once or after a time, on a clock of its own."""

    def __init__(self, bad: set[int], lasts: float = 0.0, takes: float = 0.0) -> None:
        self.bad, self.lasts, self.takes = bad, lasts, takes
        self.now = 0.0
        self.limits: list[float] = []

    def clock(self) -> float:
        return self.now

    def run(self, first: int, last: int, seconds: float) -> list[int]:
        self.limits.append(seconds)
        if self.bad & set(range(first, last)):
            self.now += min(self.lasts, seconds)
            raise FunctionFaultError("no")
        self.now += self.takes
        return list(range(first, last))

    def parts(self, records: int, seconds: float = 10.0) -> list[TriedPart[list[int]]]:
        return list(try_parts(0, records, self.run, Patience(seconds, self.clock)))


def taken(parts: list[TriedPart[list[int]]]) -> list[int]:
    return [record for part in parts for record in part.given or []]


def dead(parts: list[TriedPart[list[int]]]) -> list[int]:
    return [record for part in parts if part.given is None for record in range(part.first, part.last)]


@given(st.integers(1, 200), st.sets(st.integers(0, 199)))
def test_exactly_those_at_fault_are_left_out_and_the_others_stay_in_order(records: int, bad: set[int]) -> None:
    parts = Trial(bad).parts(records)
    assert taken(parts) == [record for record in range(records) if record not in bad]
    assert dead(parts) == sorted(record for record in bad if record < records)
    assert [part.first for part in parts] == [0, *(part.last for part in parts[:-1])]
    assert {part.fault for part in parts if part.given is None} <= {"no"}


def test_a_batch_that_is_taken_is_asked_for_once() -> None:
    trial = Trial(set())
    assert trial.parts(1000) == [TriedPart(0, 1000, list(range(1000)))]
    assert trial.limits == [10.0]


def test_one_record_that_never_ends_is_found_among_a_thousand() -> None:
    trial = Trial({577}, lasts=1e9, takes=0.01)
    parts = trial.parts(1000)
    assert dead(parts) == [577]
    assert trial.now < 60


@given(st.integers(1, 300), st.sets(st.integers(0, 299)), st.floats(0, 20), st.floats(0, 0.5))
def test_every_record_is_taken_or_dead_and_the_time_is_bounded(
    records: int, bad: set[int], lasts: float, takes: float
) -> None:
    trial = Trial(bad, lasts, takes)
    parts = trial.parts(records)
    assert sorted(taken(parts) + dead(parts)) == list(range(records))
    assert not bad & set(taken(parts))
    # Six times ten seconds, what was under way then, and one last chance for each half that was waiting.
    assert trial.now <= 60 + 10 + 10 * (2.5 + takes)


def test_when_patience_is_at_its_end_the_rest_has_one_short_chance() -> None:
    trial = Trial(set(range(0, 64, 2)), lasts=1e9)
    patience = Patience(1.0, trial.clock)
    parts = list(try_parts(0, 64, trial.run, patience))
    assert patience.exhausted
    assert "with this record or another of" in parts[-1].fault
    later = list(try_parts(100, 200, trial.run, patience))
    assert taken(later) == list(range(100, 200))
    assert trial.limits[-1] == 0.25

"""The checker finds nothing in a right record, and in one that was altered exactly what was altered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network.checker import Fault, Holding, Kind, Run, Seen, Verdict, check, digest


@dataclass
class Record:
    """A run that went well: people with holdings of three subscriptions, some given up, some with a second run."""

    produced: dict[int, dict[int, str]]
    holdings: list[Holding]
    runs: list[Run]
    seen: list[Seen]

    def verdict(self) -> Verdict:
        return check(self.produced, self.holdings, self.runs, self.seen)


def right(random: Random) -> Record:
    executions = {s: sorted(random.sample(range(1, 60), random.randint(4, 20))) for s in (1, 2, 3)}
    produced = {s: {e: digest([s, e]) for e in found} for s, found in executions.items()}
    record = Record(produced, [], [], [])
    for number in range(random.randint(1, 4)):
        for subscription in random.sample([1, 2, 3], random.randint(1, 3)):
            hold(random, record, f"p{number}", subscription)
        record.runs += [Run(f"p{number}"), Run(f"p{number}", 1)]
    return record


def hold(random: Random, record: Record, subscriber: str, subscription: int) -> None:
    found = list(record.produced[subscription])
    since = random.choice([0, *found[:-3]])
    until = random.choice([None, found[-1], found[-2]])
    holding = Holding(subscriber, subscription, since, until)
    record.holdings.append(holding)
    had = [e for e in found if holding.covers(e)]
    end, again = random.randint(0, len(had)), random.randint(0, 2)
    for run, part in enumerate((had[:end], had[max(0, end - again) :])):
        record.seen += [Seen(subscriber, subscription, e, digest([subscription, e]), run) for e in part]


@given(st.integers())
def test_a_right_record_has_no_fault_also_if_a_new_run_without_cursors_gets_something_again(seed: int) -> None:
    verdict = right(Random(seed)).verdict()
    assert not verdict.faults
    assert "no fault" in str(verdict)


def lose(random: Random, record: Record) -> tuple[Kind, Seen]:
    note = random.choice(record.seen)
    record.seen = [n for n in record.seen if key(n) != key(note)]
    return Kind.LOST, note


def repeat(random: Random, record: Record) -> tuple[Kind, Seen]:
    note = random.choice(record.seen)
    record.seen.insert(random.randint(record.seen.index(note) + 1, len(record.seen)), note)
    return Kind.DUPLICATED, note


def begin_behind(random: Random, record: Record) -> tuple[Kind, Seen]:
    note = next(n for n in record.seen if n.execution == first(record, n))
    record.runs = [
        replace(r, cursors={note.subscription: note.execution}) if (r.subscriber, r.number) == who(note) else r
        for r in record.runs
    ]
    return Kind.DUPLICATED, note


def alter(random: Random, record: Record) -> tuple[Kind, Seen]:
    place = random.randrange(len(record.seen))
    record.seen[place] = replace(record.seen[place], digest=digest("something else"))
    return Kind.ALTERED, record.seen[place]


def invent(random: Random, record: Record) -> tuple[Kind, Seen]:
    note = random.choice(record.seen)
    del record.produced[note.subscription][note.execution]
    record.seen = [n for n in record.seen if n is note or (n.subscription, n.execution) != key(note)[1:]]
    return Kind.INVENTED, note


def never_held(random: Random, record: Record) -> tuple[Kind, Seen]:
    note = replace(random.choice(record.seen), subscriber="stranger", run=0)
    record.runs.append(Run("stranger"))
    record.seen.append(note)
    return Kind.UNHELD, note


def key(note: Seen) -> tuple[str, int, int]:
    return note.subscriber, note.subscription, note.execution


def who(note: Seen) -> tuple[str, int]:
    return note.subscriber, note.run


def first(record: Record, note: Seen) -> int:
    return min(n.execution for n in record.seen if (*who(n), n.subscription) == (*who(note), note.subscription))


@pytest.mark.parametrize("mutation", [lose, repeat, begin_behind, alter, invent, never_held])
@given(seed=st.integers())
def test_each_fault_is_found_and_nothing_else(
    mutation: Callable[[Random, Record], tuple[Kind, Seen]], seed: int
) -> None:
    random = Random(seed)
    record = right(random)
    kind, note = mutation(random, record)
    assert list(record.verdict().faults) == [Fault(kind, *key(note))]


@given(st.integers())
def test_an_exchange_of_two_notes_of_a_subscription_is_out_of_order(seed: int) -> None:
    record = right(Random(seed))
    second = next((n for n in record.seen if n.execution != first(record, n)), None)
    if second is None:
        return
    place = record.seen.index(second)
    record.seen[place - 1 : place + 1] = [second, record.seen[place - 1]]
    assert [fault.kind for fault in record.verdict().faults] == [Kind.DISORDERED]


def test_what_comes_after_a_subscription_was_given_up_is_not_held() -> None:
    produced = {1: {4: "four", 5: "five"}}
    seen = [Seen("ann", 1, 4, "four"), Seen("ann", 1, 5, "five")]
    verdict = check(produced, [Holding("ann", 1, since=0, until=4)], [Run("ann")], seen)
    assert verdict.faults == [Fault(Kind.UNHELD, "ann", 1, 5)]


def test_what_was_found_before_a_subscription_is_not_held() -> None:
    verdict = check({1: {4: "four"}}, [Holding("ann", 1, since=4)], [Run("ann")], [Seen("ann", 1, 4, "four")])
    assert verdict.faults == [Fault(Kind.UNHELD, "ann", 1, 4)]


def test_what_was_found_between_two_holdings_is_not_held_and_all_else_is() -> None:
    produced = {1: {1: "a", 2: "b", 3: "c"}}
    holdings = [Holding("ann", 1, since=0, until=1), Holding("ann", 1, since=2)]
    seen = [Seen("ann", 1, e, produced[1][e]) for e in (1, 2, 3)]
    assert not check(produced, holdings, [Run("ann")], [seen[0], seen[2]]).faults
    assert check(produced, holdings, [Run("ann")], seen).faults == [Fault(Kind.UNHELD, "ann", 1, 2)]
    assert check(produced, holdings, [Run("ann")], seen[:1]).faults == [Fault(Kind.LOST, "ann", 1, 3)]


def test_a_verdict_counts_its_faults_and_shows_the_first_of_them() -> None:
    verdict = check({1: dict.fromkeys(range(1, 31), "x")}, [Holding("ann", 1, 0)], [Run("ann")], [])
    assert verdict.count(Kind.LOST) == 30
    assert str(verdict).splitlines()[:2] == ["0 notes: 30 lost", "  lost: ann, subscription 1, execution 1"]
    assert len(str(verdict).splitlines()) == 11

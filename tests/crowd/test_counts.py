"""What is counted of the people: notes, their order, and how long reports took to them."""

from __future__ import annotations

import time

import msgspec
import pytest

from tocsin.client.note import Note
from tocsin.crowd import counts as module
from tocsin.crowd.counts import CrowdCounts, Waits
from tocsin.crowd.delays import within


def note(execution: int, *reports: str, subscription: int = 1, recovered: bool = False) -> Note:
    payload = msgspec.json.encode([{"id": report, "severity": 1} for report in reports])
    return Note(subscription, "C", execution, payload, recovered, lambda: None)


def test_notes_and_bytes_add_up() -> None:
    counts = CrowdCounts()
    counts.receive("p1", note(1, "a", "b"))
    counts.receive("p2", note(1, "a"))
    figures = counts.figures()
    assert figures.notifications == 2
    assert figures.bytes == len(note(1, "a", "b").payload) + len(note(1, "a").payload)


def test_a_note_that_comes_twice_and_one_that_comes_late_are_told_apart() -> None:
    counts = CrowdCounts()
    counts.hold("p1", 1, 0)
    for execution in (1, 4, 4, 2):
        counts.receive("p1", note(execution))
    assert (counts.figures().duplicates, counts.figures().disordered) == (1, 1)


def test_people_and_subscriptions_have_orders_of_their_own() -> None:
    counts = CrowdCounts()
    counts.receive("p1", note(4))
    counts.receive("p1", note(2, subscription=9))
    counts.receive("p2", note(2))
    assert (counts.figures().duplicates, counts.figures().disordered) == (0, 0)


def test_people_wait_from_the_acknowledgement_and_not_from_when_a_report_was_drawn_up() -> None:
    waits = Waits()
    waits.acknowledge(["a"], 100.0)
    waits.tell("a", 104.0)
    waits.tell("a", 104.5)
    assert within(waits.stopwatch.delays(), 0.5) == 4.0
    assert within(waits.stopwatch.delays(), 1) == 4.5


def test_a_note_that_overtakes_the_word_of_the_acknowledgement_counts_once_that_has_come() -> None:
    waits = Waits()
    waits.tell("a", 104.0)
    assert waits.stopwatch.delays() == {}
    waits.acknowledge(["a"], 103.0)
    assert within(waits.stopwatch.delays(), 1) == 1.0
    waits.tell("b", 104.0)
    waits.acknowledge(["b"], 104.2)
    assert within(waits.stopwatch.delays(), 0.5) == 0.0, "nobody waits for less than nothing"


def test_what_is_remembered_of_reports_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REPORTS", 2)
    monkeypatch.setattr(module, "MOST_UNKNOWN", 2)
    waits = Waits()
    waits.acknowledge(["a", "b", "c"], 1.0)
    for report in "abc":
        waits.tell(report, 2.0)
    assert sum(waits.stopwatch.delays().values()) == 2, "the oldest is forgotten"
    for report in "xyz":
        waits.tell(report, 2.0)
    waits.acknowledge(["x", "y", "z"], 1.5)
    assert sum(waits.stopwatch.delays().values()) == 4


def test_what_was_found_while_somebody_was_away_says_nothing_of_the_delay() -> None:
    counts = CrowdCounts()
    counts.waits.acknowledge(["a"], time.monotonic())
    counts.receive("p1", note(1, "a", recovered=True))
    assert counts.figures().waits == {}
    counts.receive("p2", note(1, "a"))
    assert sum(counts.figures().waits.values()) == 1


def test_delays_are_known_by_parts() -> None:
    delays = {100: 9, 3000: 1}
    assert (within(delays, 0.5), within(delays, 0.95), within(delays, 1)) == (1.0, 30.0, 30.0)
    assert within({}, 0.5) == 0.0

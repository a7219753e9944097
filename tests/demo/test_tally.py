from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tocsin.client.note import Note
from tocsin.demo.tally import Tally, waited


def note(execution: int, *ages: float, subscription: int = 1) -> Note:
    """A note with reports that were made so many seconds ago."""
    reported = [datetime.now(UTC) - timedelta(seconds=age) for age in ages]
    rows: list[dict[str, Any]] = [{"id": str(n), "at": at.isoformat()} for n, at in enumerate(reported)]
    return Note(subscription, "C", execution, msgspec.json.encode(rows), False, lambda: None)


def test_notes_reports_and_bytes_add_up() -> None:
    tally = Tally()
    tally.receive("p1", note(1, 5, 5))
    tally.receive("p2", note(1, 5))
    figures = tally.figures()
    assert (figures.notifications, figures.reports) == (2, 3)
    assert figures.bytes == len(note(1, 5, 5).payload) + len(note(1, 5).payload)


def test_a_note_that_comes_twice_and_one_that_comes_late_are_told_apart() -> None:
    tally = Tally()
    for execution in (1, 4, 4, 2):
        tally.receive("p1", note(execution))
    assert (tally.figures().duplicates, tally.figures().disordered) == (1, 1)


def test_people_and_subscriptions_have_orders_of_their_own() -> None:
    tally = Tally()
    tally.receive("p1", note(4))
    tally.receive("p1", note(2, subscription=9))
    tally.receive("p2", note(2))
    assert (tally.figures().duplicates, tally.figures().disordered) == (0, 0)
    assert tally.received == {"p1": {1: [4], 9: [2]}, "p2": {1: [2]}}


def test_a_subscription_of_which_nothing_came_is_known() -> None:
    tally = Tally()
    tally.hold("p1", 7)
    assert tally.received == {"p1": {7: []}}


def test_how_long_reports_took_is_known_by_parts() -> None:
    tally = Tally()
    tally.receive("p1", note(1, *([1.0] * 9), 30.0))
    waits = tally.figures().waits
    assert (round(waited(waits, 0.5)), round(waited(waits, 0.95))) == (1, 30)
    assert waited({}, 0.5) == 0.0

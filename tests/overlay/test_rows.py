"""The rows of a channel as publications: their ids, and what becomes of their columns."""

from __future__ import annotations

import pytest

from tocsin.errors import InvalidError
from tocsin.overlay.replay import KeptLog, ReplayLog
from tocsin.overlay.rows import MOST_ROWS, ChannelRows, as_content


def keep(log: ReplayLog, rows: ChannelRows, execution: int, *highs: float) -> list[tuple[str, int]]:
    """What a head stores of an execution: publishers and numbers."""
    kept = []
    for found in rows.publish(7, execution, [{"high": high} for high in highs]):
        if publication := log.append(found.publisher, found.sequence, found.content):
            kept.append((publication.publisher, publication.sequence))
            log.stored(publication.offset)
    return kept


def test_a_rows_id_is_where_it_was_found() -> None:
    log = ReplayLog("h", KeptLog(), 100)
    rows = ChannelRows("Quotes", log)
    first = 3 * MOST_ROWS
    assert keep(log, rows, 3, 1, 2) == [("channel/Quotes/7", first), ("channel/Quotes/7", first + 1)]
    assert keep(log, rows, 5, 1) == [("channel/Quotes/7", 5 * MOST_ROWS)]


def test_what_comes_again_after_a_crash_in_the_middle_is_kept_once() -> None:
    log = ReplayLog("h", KeptLog(), 100)
    half, *_ = ChannelRows("Quotes", log).publish(7, 3, [{"high": 1.0}, {"high": 2.0}])
    log.append(half.publisher, half.sequence, half.content)
    log.stored(1)
    again = ChannelRows("Quotes", log)
    assert keep(log, again, 3, 1, 2) == [("channel/Quotes/7", 3 * MOST_ROWS + 1)]
    again.begin()
    assert keep(log, again, 3, 1, 2) == []


def test_executions_that_are_counted_again_have_other_ids() -> None:
    log = ReplayLog("h", KeptLog(), 100)
    rows = ChannelRows("Quotes", log)
    keep(log, rows, 3, 1)
    assert keep(log, rows, 2, 5) == [("channel/Quotes/7/2", 2 * MOST_ROWS)]
    assert keep(log, rows, 3, 6) == [("channel/Quotes/7/2", 3 * MOST_ROWS)]
    # A head that is started again goes on with the newer name, and finds out by the content.
    again = ChannelRows("Quotes", log)
    assert keep(log, again, 3, 6) == []
    assert keep(log, again, 4, 7) == [("channel/Quotes/7/2", 4 * MOST_ROWS)]
    later = ChannelRows("Quotes", log)
    assert keep(log, later, 3, 8) == [("channel/Quotes/7/3", 3 * MOST_ROWS)]


def test_columns_that_are_no_values_are_turned_to_text() -> None:
    row = {"a": None, "b": [1, {"c": 2}], "d": 2**60, "e": "x" * 5000, "f": True, "g": 1.5, "h": -(2**53)}
    assert as_content(row) == {
        "b": '[1,{"c":2}]',
        "d": "1152921504606846976",
        "e": "x" * 1023 + "…",
        "f": True,
        "g": 1.5,
        "h": -(2.0**53),
    }
    with pytest.raises(InvalidError, match="at most 64"):
        as_content({f"column{number}": 1 for number in range(65)})


def test_a_row_that_cannot_be_a_publication_is_left_out_and_counted() -> None:
    rows = ChannelRows("Quotes", ReplayLog("h", KeptLog(), 100))
    found = rows.publish(7, 1, [{"a`b": 1}, {}, {"high": 2}])
    assert [(each.sequence - MOST_ROWS, each.content) for each in found] == [(1, {}), (2, {"high": 2.0})]
    assert rows.refused == 1
    assert "is no attribute" in rows.reason

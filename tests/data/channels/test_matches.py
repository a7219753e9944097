"""What nodes have found counts for an execution if it is of all that is new, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data.channels.matches import MOST_VERSIONS, Matches, NodeMatch
from tocsin.data.channels.noderesults import merge_results
from tocsin.data.results import FOUND


class Dataset:
    """Stands for a table."""


def match(channel: str, *files: str) -> NodeMatch:
    return NodeMatch(channel, "1.1", 0.0, files)


def test_all_versions_that_are_new_must_be_there() -> None:
    matches, table = Matches(), Dataset()
    matches.put(table, 5, [{"A": match("A", "a5")}])
    matches.put(table, 7, [{"A": match("A", "a7")}])
    taken = matches.take("A", table, 4, 7)
    assert not taken.complete
    assert [one.files for one in taken.matches] == [("a5",), ("a7",)]


def test_each_batch_of_a_version_must_have_results_of_the_channel() -> None:
    matches, table = Matches(), Dataset()
    matches.put(table, 1, [{"A": match("A", "a"), "B": match("B")}, {"A": match("A", "b")}])
    assert matches.take("A", table, 0, 1).complete
    assert not matches.take("B", table, 0, 1).complete


def test_a_version_without_records_needs_no_results() -> None:
    matches, table = Matches(), Dataset()
    matches.put(table, 1, [])
    taken = matches.take("A", table, 0, 1)
    assert taken.complete
    assert not taken.matches


def test_nothing_new_is_nothing_to_take() -> None:
    matches, table = Matches(), Dataset()
    matches.put(table, 1, [])
    assert not matches.take("A", table, 1, 1).complete


def test_what_was_taken_is_not_there_any_more() -> None:
    matches, table = Matches(), Dataset()
    matches.put(table, 1, [{"A": match("A", "a")}])
    assert matches.take("A", table, 0, 1).complete
    assert not matches.take("A", table, 0, 1).complete


def test_what_the_channel_has_seen_otherwise_is_passed_over_and_told_so() -> None:
    matches, table = Matches(), Dataset()
    matches.put(table, 1, [{"A": match("A", "a1")}])
    matches.put(table, 2, [{"A": match("A", "a2")}])
    taken = matches.take("A", table, 1, 2)
    assert taken.complete
    assert [one.files for one in taken.matches] == [("a2",)]
    assert [one.files for one in taken.passed_over] == [("a1",)]


def test_a_dataset_that_is_made_anew_has_nothing_of_the_one_before() -> None:
    matches, before, after = Matches(), Dataset(), Dataset()
    matches.put(before, 1, [])
    assert not matches.take("A", after, 0, 1).complete


def test_versions_that_nobody_asks_for_are_let_go() -> None:
    matches, table = Matches(), Dataset()
    gone = [one for n in range(MOST_VERSIONS + 1) for one in matches.put(table, n, [{"A": match("A", f"a{n}")}])]
    assert [one.files for one in gone] == [("a0",)]


def found(rows: Sequence[tuple[int, list[object]]]) -> pa.Table:
    payloads = [json.dumps(values, separators=(",", ":"), ensure_ascii=False) for _, values in rows]
    columns = {
        "be": [be for be, _ in rows],
        "payload": payloads,
        "rows": [len(values) for _, values in rows],
        "bytes": [len(payload.encode()) for payload in payloads],
    }
    return pa.table(columns, schema=FOUND)


ROWS = st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2), min_size=1, max_size=3)
PARTS = st.lists(st.dictionaries(st.integers(1, 6), ROWS, max_size=4), max_size=4)


@given(PARTS)
def test_what_several_have_found_is_put_together_for_each_subscription(parts: list[dict[int, list[object]]]) -> None:
    together: dict[int, list[object]] = {}
    for part in parts:
        for be, values in part.items():
            together.setdefault(be, []).extend(values)
    rows = merge_results([found(list(part.items())) for part in parts]).to_pylist()
    assert {row["be"]: json.loads(row["payload"]) for row in rows} == together
    assert len(rows) == len(together)
    assert all(row["rows"] == len(together[row["be"]]) for row in rows)
    assert all(row["bytes"] == len(row["payload"].encode()) for row in rows)

"""A table: data and markers in one commit, versions that count, and the same again after opening it anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.data.lake.conftest import directory_only
from tocsin.data.lake.folder import Folder
from tocsin.data.lake.table import VERSION, Table
from tocsin.errors import StorageError

Rows = Callable[..., pa.Table]
Content = Callable[[Table], dict[str, int]]
Reopen = Callable[[], Table]
Files = Callable[[Table], set[str]]


def new_since(table: Table, version: int) -> set[str]:
    found = table.read(pc.field(VERSION) > version, ["key"], since=version)
    return set(found["key"].to_pylist())


def test_a_new_table_is_empty_at_version_0(table: Table, content: Content) -> None:
    assert (table.version, table.marker("slice-0"), content(table), table.snapshot.files) == (0, 0, {}, ())


def test_each_commit_has_the_next_version_and_its_markers(table: Table, rows: Rows, content: Content) -> None:
    table.append(rows(a=1), {"slice-0": 10})
    table.append(rows(b=2), {"slice-1": 7})
    assert (table.version, table.marker("slice-0"), table.marker("slice-1")) == (2, 10, 7)
    assert content(table) == {"a": 1, "b": 2}
    assert new_since(table, 1) == {"b"}


def test_marking_is_a_commit_without_data(table: Table, rows: Rows, content: Content) -> None:
    table.append(rows(a=1), {"slice-0": 10})
    table.mark({"slice-0": 20})
    assert (table.version, table.marker("slice-0")) == (2, 20)
    assert (content(table), new_since(table, 1)) == ({"a": 1}, set())


@directory_only
def test_a_table_knows_when_it_was_last_committed_to_also_when_it_is_opened_anew(
    table: Table, rows: Rows, reopen: Reopen
) -> None:
    table.append(rows(a=1), {"slice-0": 10})
    *_, newest = sorted((table.path / "_delta_log").glob("*.json"))
    os.utime(newest, (1000.0, 1000.0))
    assert reopen().changed_at == 1000.0
    table.append(rows(b=1), {"slice-0": 20})
    assert table.changed_at > 1000.0


def test_merging_keeps_the_newest_row_of_each_key(table: Table, rows: Rows, content: Content) -> None:
    table.merge(rows(a=1, b=1), "key", {"slice-0": 1})
    table.merge(rows(b=2, c=2), "key", {"slice-0": 2})
    assert content(table) == {"a": 1, "b": 2, "c": 2}
    assert new_since(table, 1) == {"b", "c"}
    assert table.marker("slice-0") == 2


def test_overwriting_replaces_everything(table: Table, rows: Rows, content: Content) -> None:
    table.append(rows(a=1), {})
    table.overwrite(rows(b=2), {"loaded": 5})
    assert (content(table), table.version, table.marker("loaded")) == ({"b": 2}, 2, 5)


def test_deleting_rows_is_no_news(table: Table, rows: Rows, content: Content) -> None:
    table.append(rows(a=1, b=2, c=3), {"slice-0": 4})
    assert table.delete(pc.field("value") < 3) == 2
    assert table.delete(pc.field("value") < 3) == 0
    assert (content(table), table.version, table.marker("slice-0")) == ({"c": 3}, 1, 4)


def test_a_table_opened_again_is_the_same(table: Table, rows: Rows, reopen: Reopen, content: Content) -> None:
    table.append(rows(a=1), {"slice-0": 10})
    table.merge(rows(a=2, b=2), "key", {"slice-0": 20})
    table.mark({"slice-1": 5})
    again = reopen()
    assert (again.version, again.marker("slice-0"), again.marker("slice-1")) == (3, 20, 5)
    assert (content(again), again.snapshot.files) == (content(table), table.snapshot.files)


def test_versions_and_markers_survive_hundreds_of_commits_and_the_upkeep_between_them(
    table: Table, rows: Rows, reopen: Reopen, content: Content
) -> None:
    for number in range(1, 121):
        table.append(rows(**{f"k{number}": number}), {f"slice-{number % 3}": number})
        if number % 50 == 0:
            table.compact()
            table.vacuum(0)
    again = reopen()
    assert again.version == 120
    assert [again.marker(f"slice-{index}") for index in range(3)] == [120, 118, 119]
    assert content(again) == {f"k{n}": n for n in range(1, 121)}
    assert new_since(again, 117) == {"k118", "k119", "k120"}


def test_what_is_new_is_still_told_apart_after_compaction(table: Table, rows: Rows) -> None:
    for number in range(10):
        table.append(rows(**{f"k{number}": number}), {})
    table.compact()
    assert len(table.snapshot.files) == 1
    for since in range(11):
        assert new_since(table, since) == {f"k{n}" for n in range(since, 10)}


def test_files_with_nothing_new_are_not_read(table: Table, rows: Rows) -> None:
    for number in range(4):
        table.append(rows(**{f"k{number}": number}), {})
    assert [len(table.snapshot.paths(since)) for since in range(5)] == [4, 3, 2, 1, 0]


def test_other_columns_than_declared_are_refused_by_name(folder: Folder, table: Table) -> None:
    changed = pa.schema([("key", pa.string()), ("value", pa.string()), ("more", pa.int64())])
    with pytest.raises(StorageError) as refused:
        Table(folder, changed)
    assert "value is int64, declared string" in str(refused.value)
    assert "more is missing, declared int64" in str(refused.value)


def test_files_written_for_another_version_are_not_adopted(table: Table, rows: Rows, content: Content) -> None:
    table.append(rows(a=1), {})
    with pytest.raises(StorageError, match="written for version 3, but 2 is next"):
        table.adopt([], 3, {"slice-0": 1})
    assert (table.version, table.marker("slice-0"), content(table)) == (1, 0, {"a": 1})


def test_rows_that_do_not_fit_leave_no_trace(table: Table, rows: Rows, content: Content, parquet_files: Files) -> None:
    table.append(rows(a=1), {"slice-0": 1})
    before = parquet_files(table)
    with pytest.raises(Exception, match=r"(?i)schema|cast|field"):
        table.append(pa.table({"other": [1]}), {"slice-0": 2})
    assert (table.version, table.marker("slice-0"), content(table)) == (1, 1, {"a": 1})
    assert parquet_files(table) == before


def refused(*_: object) -> None:
    raise OSError(28, "No space left on device")


@directory_only
@pytest.mark.parametrize("step", ["write_bytes", "hardlink_to"])
def test_what_a_failed_commit_wrote_is_removed(
    table: Table, rows: Rows, content: Content, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    table.append(rows(a=1), {})
    monkeypatch.setattr(Path, step, refused)
    with pytest.raises(StorageError, match="the disk is full; free some space"):
        table.append(rows(b=2), {})
    monkeypatch.undo()
    assert {str(file) for file in table.path.glob("*.parquet")} == set(table.snapshot.paths())
    table.append(rows(c=3), {})
    assert (content(table), table.version) == ({"a": 1, "c": 3}, 2)


def test_many_threads_may_commit_and_look_at_the_same_time(table: Table, rows: Rows, content: Content) -> None:
    def commit(number: int) -> None:
        table.append(rows(**{f"k{number}": number}), {f"slice-{number}": number + 1})
        assert table.marker(f"slice-{number}") == number + 1
        assert table.snapshot.version <= table.version
        if number % 5 == 0:
            table.compact()
            table.vacuum(60)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(commit, range(20)))
    assert table.version == 20
    assert content(table) == {f"k{n}": n for n in range(20)}
    assert sorted(table.read(columns=[VERSION])[VERSION].to_pylist()) == list(range(1, 21))

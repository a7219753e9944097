"""Files whose rows bear no version: the commit that takes them gives it to them, and nobody can tell the difference."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.data.lake.conftest import SCHEMA, directory_only
from tests.data.lake.offering import offered
from tocsin.data.lake import frames
from tocsin.data.lake.directory import DirectoryFolder
from tocsin.data.lake.folder import DRAFT, FoundFile
from tocsin.data.lake.table import File, Table
from tocsin.errors import StorageError

Rows = Callable[..., pa.Table]
Reopen = Callable[[], Table]
Content = Callable[[Table], dict[str, int]]


def versions(table: Table, since: int = -1) -> dict[str, int]:
    """The version of each row that came after ``since``, as readers see it."""
    found = table.read(pc.field("_v") > since, ["key", "_v"], since).to_pylist()
    return {row["key"]: row["_v"] for row in found}


def grown(table: Table, rows: Rows) -> None:
    """Two commits of our own, with one of two nodes' files between them."""
    table.append(rows(a=1), {"slice-0": 1})
    table.adopt_unstamped([offered(table, rows(b=2)), offered(table, rows(c=3, d=4))], {"slice-0": 2, "slice-1": 7})
    table.append(rows(e=5), {"slice-0": 3})


def test_files_of_several_nodes_are_one_commit_with_its_markers(table: Table, rows: Rows, reopen: Reopen) -> None:
    grown(table, rows)
    for each in (table, reopen()):
        assert (each.version, each.marker("slice-0"), each.marker("slice-1")) == (3, 3, 7)
        assert versions(each) == {"a": 1, "b": 2, "c": 2, "d": 2, "e": 3}
        assert versions(each, 1) == {"b": 2, "c": 2, "d": 2, "e": 3}
        assert versions(each, 2) == {"e": 3}


def test_no_files_move_the_markers(table: Table) -> None:
    table.adopt_unstamped([], {"slice-0": 9})
    assert (table.version, table.marker("slice-0"), table.snapshot.files) == (1, 9, ())


CHANGES: dict[str, Callable[[Table, Rows], object]] = {
    "a compaction": lambda table, rows: table.compact(),
    "a deletion": lambda table, rows: table.delete(pc.field("value") == 4),
    "a merge": lambda table, rows: table.merge(rows(d=9), "key", {}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_writes_rows_anew_fills_their_versions_in(
    table: Table, rows: Rows, reopen: Reopen, change: Callable[[Table, Rows], object]
) -> None:
    grown(table, rows)
    change(table, rows)
    assert {key: version for key, version in versions(table).items() if key != "d"} == {"a": 1, "b": 2, "c": 2, "e": 3}
    stored = DeltaTable(**table.folder.delta).to_pyarrow_table().to_pylist()
    assert {row["key"]: row["_v"] for row in stored if row["key"] == "c"} == {"c": 2}
    assert versions(reopen()) == versions(table)


def test_a_checkpoint_keeps_what_is_known_of_them(table: Table, rows: Rows, reopen: Reopen) -> None:
    grown(table, rows)
    for number in range(4, 120):
        table.mark({"slice-0": number})
    assert table.checkpoint(100)
    again = reopen()
    assert versions(again) == {"a": 1, "b": 2, "c": 2, "d": 2, "e": 3}
    assert set(again.snapshot.files) == set(table.snapshot.files)


@directory_only
@pytest.mark.spark
def test_spark_takes_such_a_file_whole_or_not_at_all(spark: SparkSession, table: Table, rows: Rows) -> None:
    grown(table, rows)

    def fresh(since: int) -> list[str]:
        return sorted(row.key for row in frames.fresh(spark, table, table.snapshot, since).collect())

    assert [fresh(since) for since in range(4)] == [list("abcde"), list("bcde"), ["e"], []]
    table.compact()
    table.adopt_unstamped([offered(table, rows(f=6))], {})
    assert [fresh(since) for since in range(5)] == [list("abcdef"), list("bcdef"), ["e", "f"], ["f"], []]


def test_a_file_counts_once(table: Table, rows: Rows, content: Content) -> None:
    file = offered(table, rows(a=1))
    table.adopt_unstamped([file], {})
    with pytest.raises(StorageError, match="is part of it already"):
        table.adopt_unstamped([file], {})
    other = offered(table, rows(b=2))
    with pytest.raises(StorageError, match="is part of it already"):
        table.adopt_unstamped([other, other], {})
    assert (table.version, content(table)) == (1, {"a": 1})


@directory_only
@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["gone", "cut short"])
def test_a_file_that_is_not_there_as_it_was_written_is_refused(
    table: Table, rows: Rows, content: Content, spoil: Callable[[Path], object]
) -> None:
    good, bad = offered(table, rows(a=1)), offered(table, rows(b=2))
    spoil(Path(bad.path))
    with pytest.raises(StorageError, match="is not there as it was written"):
        table.adopt_unstamped([good, bad], {"slice-0": 1})
    assert (table.version, table.marker("slice-0")) == (0, 0)
    table.adopt_unstamped([good], {"slice-0": 1})
    assert content(table) == {"a": 1}


def made_old(file: File, seconds: float) -> None:
    os.utime(file.path, times=(time.time() - seconds,) * 2)


@directory_only
def test_a_file_that_nobody_claims_is_removed_after_a_while_and_not_committed_any_more_before(
    table: Table, rows: Rows, reopen: Reopen
) -> None:
    claimed, late, young, old = (offered(table, rows(**{name: 1})) for name in "abcd")
    table.adopt_unstamped([claimed], {})
    for file, seconds in ((claimed, 9000), (late, 1900), (old, 3700)):
        made_old(file, seconds)
    assert reopen().vacuum(0) == 1
    assert [Path(file.path).exists() for file in (claimed, late, young, old)] == [True, True, True, False]
    with pytest.raises(StorageError, match="was written too long ago"):
        table.adopt_unstamped([late], {})
    table.adopt_unstamped([young], {})
    assert versions(table) == {"a": 1, "c": 2}


@directory_only
def test_who_is_not_the_last_to_have_committed_removes_nothing_of_nodes(
    table: Table, rows: Rows, reopen: Reopen
) -> None:
    file = offered(table, rows(a=1))
    reopen().adopt_unstamped([file], {})
    made_old(file, 3700)
    assert table.vacuum(0) == 0
    assert Path(file.path).exists()


class StoreThatIsLate(DirectoryFolder):
    """A directory of another machine's, whose clock is behind this one's."""

    def __init__(self, path: Path, behind: float) -> None:
        super().__init__(path)
        self._behind = behind

    def find(self, name: str) -> FoundFile | None:
        found = super().find(name)
        return found and found._replace(changed_at=found.changed_at - self._behind)

    def files(self) -> dict[str, FoundFile]:
        return {
            name: file._replace(changed_at=file.changed_at - self._behind) for name, file in super().files().items()
        }

    def below(self, name: str) -> StoreThatIsLate:
        return StoreThatIsLate(self.directory / name, self._behind)


@pytest.mark.parametrize("behind", [86400.0, -86400.0])
def test_files_are_as_old_as_the_store_says_whatever_time_it_is_here(
    tmp_path: Path, rows: Rows, content: Content, behind: float
) -> None:
    table = Table(StoreThatIsLate(tmp_path, behind), SCHEMA)
    young, late, old = (offered(table, rows(**{name: 1})) for name in "abc")
    made_old(late, 1900)
    made_old(old, 3700)
    with pytest.raises(StorageError, match="was written too long ago"):
        table.adopt_unstamped([late], {})
    assert table.vacuum(0) == 1
    assert [Path(file.path).exists() for file in (young, late, old)] == [True, True, False]
    table.adopt_unstamped([young], {})
    assert content(table) == {"a": 1}


@directory_only
def test_one_file_from_the_future_makes_no_other_too_old(table: Table, rows: Rows, content: Content) -> None:
    table.adopt_unstamped([], {})
    odd, good = offered(table, rows(a=1)), offered(table, rows(b=2))
    made_old(odd, -1e9)
    table.adopt_unstamped([odd], {})
    assert table.vacuum(0) == 0
    table.adopt_unstamped([good], {})
    assert content(table) == {"a": 1, "b": 2}


def test_looking_at_the_stores_clock_leaves_nothing_behind(table: Table, rows: Rows) -> None:
    table.adopt_unstamped([offered(table, rows(a=1))], {})
    assert [name for name in table.folder.files() if name.startswith(DRAFT)] == []


def spoiled(table: Table, file: File) -> File:
    """What is between the beginning and the end of a file is gone."""
    content = table.folder.read(file.name)
    first = pq.read_metadata(pa.BufferReader(content)).row_group(0).column(0)
    begin = first.dictionary_page_offset or first.data_page_offset
    table.folder.write(file.name, content[:begin] + b"\xff" * 20 + content[begin + 20 :])
    return file


READERS: dict[str, Callable[[Table], object]] = {
    "who reads it": lambda table: table.read(),
    "who compacts it": Table.compact,
    "who removes rows of it": lambda table: table.delete(pc.field("key") == "b"),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_whoever_fails_on_a_damaged_file_says_which_it_is_and_whose(
    table: Table, rows: Rows, read: Callable[[Table], object]
) -> None:
    good, bad = offered(table, rows(a=1)), spoiled(table, offered(table, rows(b=2, c=3)))
    table.adopt_unstamped([good, bad], {}, {good.name: "n1", bad.name: "n2"})
    with pytest.raises(StorageError, match=rf"its file {bad.name}, written by node n2, is damaged"):
        read(table)


def test_of_a_damaged_file_whose_entry_is_gone_the_name_is_told(table: Table, rows: Rows) -> None:
    bad = spoiled(table, offered(table, rows(b=2)))
    table.adopt_unstamped([bad], {})
    with pytest.raises(StorageError, match=rf"its file {bad.name}, written by a node that its log does not name"):
        table.read()


@directory_only
def test_a_file_that_is_gone_is_not_told_to_be_damaged(table: Table, rows: Rows) -> None:
    file = offered(table, rows(b=2))
    table.adopt_unstamped([file], {}, {file.name: "n1"})
    Path(file.path).unlink()
    with pytest.raises(StorageError) as told:
        table.read()
    assert "damaged" not in str(told.value)

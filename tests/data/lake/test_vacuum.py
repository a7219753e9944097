"""Files that are no longer part of a table stay for those who still read them, and then go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tocsin.data.lake import retired
from tocsin.data.lake import table as module
from tocsin.data.lake.table import Snapshot, Table
from tocsin.data.lake.writer import parts, source

Rows = Callable[..., pa.Table]
Files = Callable[[Table], set[str]]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retired, "time", clock)
    return clock


def values(table: Table, snapshot: Snapshot) -> list[int]:
    return sorted(table.read(of=snapshot)["value"].to_pylist())


CHANGES: dict[str, Callable[[Table, Rows], object]] = {
    "a merge": lambda table, rows: table.merge(rows(a=9), "key", {}),
    "a compaction": lambda table, rows: table.compact(),
    "a deletion": lambda table, rows: table.delete(pc.field("value") == 1),
    "an overwriting": lambda table, rows: table.overwrite(rows(z=0), {}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_held_snapshot_can_be_read_however_long_it_is_held(
    table: Table, rows: Rows, clock: Clock, parquet_files: Files, change: Callable[[Table, Rows], object]
) -> None:
    table.append(rows(a=1), {})
    table.append(rows(b=2), {})
    held = table.snapshot
    change(table, rows)
    clock.now += 1000
    table.vacuum(60)
    assert values(table, held) == [1, 2]
    del held
    assert table.vacuum(60) > 0
    assert parquet_files(table) == set(table.snapshot.paths())


def test_paths_taken_from_a_snapshot_can_be_read_within_the_grace_period(
    table: Table, rows: Rows, clock: Clock, parquet_files: Files
) -> None:
    table.append(rows(a=1), {})
    before = table.snapshot.files
    table.overwrite(rows(b=2), {})
    clock.now += 59
    assert table.vacuum(60) == 0
    assert source(table.folder, before, table.schema).to_table()["value"].to_pylist() == [1]
    clock.now += 2
    assert table.vacuum(60) == 1
    assert parquet_files(table) == set(table.snapshot.paths())


def test_vacuuming_twice_finds_nothing_the_second_time(table: Table, rows: Rows) -> None:
    for number in range(5):
        table.merge(rows(a=number), "key", {})
    assert (table.vacuum(0), table.vacuum(0)) == (4, 0)
    assert values(table, table.snapshot) == [4]


def test_what_a_process_that_died_left_behind_goes_too(
    table: Table, rows: Rows, reopen: Callable[[], Table], clock: Clock, parquet_files: Files
) -> None:
    table.append(rows(a=1), {})
    table.overwrite(rows(b=2), {})
    table.folder.write("part-orphan.parquet", b"never committed")
    again = reopen()
    clock.now += 61
    assert again.vacuum(60) == 2
    assert parquet_files(again) == set(again.snapshot.paths())
    assert values(again, again.snapshot) == [2]


def test_rows_can_be_appended_while_files_are_compacted(
    table: Table, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        table.append(rows(**{f"k{number}": number}), {})

    def interrupted(*arguments: Any) -> Iterator[pa.Table]:
        """An append comes just before the compaction begins to write."""
        table.append(rows(meanwhile=9), {"slice-0": 1})
        yield from parts(*arguments)

    monkeypatch.setattr(module, "parts", interrupted)
    table.compact()
    assert (values(table, table.snapshot), table.version, table.marker("slice-0")) == ([0, 1, 2, 9], 4, 1)
    assert len(table.snapshot.files) == 2

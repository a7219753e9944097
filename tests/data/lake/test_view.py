"""A table as others see it: what its log says, entry by entry, also when the last one is taken back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.data.lake.conftest import SCHEMA, directory_only
from tests.data.lake.offering import offered
from tocsin.data.lake.table import Table
from tocsin.data.lake.view import TableView
from tocsin.errors import StorageError, UnavailableError

Rows = Callable[..., pa.Table]


@pytest.fixture
def view(table: Table) -> TableView:
    return TableView(table.folder, SCHEMA, ["slice-0"])


def seen(view: TableView) -> tuple[int, int, dict[str, int]]:
    """Its version and marker, and the version of each row."""
    view.refresh()
    found = view.read(pc.field("_v") >= 0, ["key", "_v"], -1).to_pylist()
    return view.version, view.marker("slice-0"), {row["key"]: row["_v"] for row in found}


def test_it_follows_whatever_is_committed(table: Table, view: TableView, rows: Rows) -> None:
    assert seen(view) == (0, 0, {})
    table.append(rows(a=1), {"slice-0": 5})
    table.adopt_unstamped([offered(table, rows(b=2))], {"slice-0": 6})
    assert seen(view) == (2, 6, {"a": 1, "b": 2})
    table.compact()
    table.mark({"slice-0": 7})
    table.delete(pc.field("key") == "a")
    assert seen(view) == (3, 7, {"b": 2})
    assert seen(TableView(table.folder, SCHEMA, ["slice-0"])) == (3, 7, {"b": 2})


def test_the_newest_commit_is_settled_once_another_follows(table: Table, view: TableView, rows: Rows) -> None:
    settled = []
    for change in (lambda: None, lambda: table.append(rows(a=1), {}), lambda: table.mark({}), table.compact):
        change()
        view.refresh()
        settled.append((view.settled, view.version))
    table.append(rows(b=1), {})
    table.compact()
    view.refresh()
    anew = TableView(table.folder, SCHEMA, [])
    anew.refresh()
    assert settled == [(0, 0), (0, 1), (1, 2), (1, 2)]
    assert (view.settled, view.version) == (anew.settled, anew.version) == (3, 3)


@directory_only
def test_what_is_taken_back_as_the_disk_refused_is_not_seen_any_more(
    table: Table, view: TableView, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(a=1), {"slice-0": 1})
    fsync = os.fsync

    def refusing(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("_delta_log"):
            assert seen(view) == (2, 2, {"a": 1, "b": 2})
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    view.refresh()
    before = view.history
    monkeypatch.setattr(os, "fsync", refusing)
    with pytest.raises(StorageError):
        table.append(rows(b=2), {"slice-0": 2})
    monkeypatch.undo()
    table.append(rows(c=3), {"slice-0": 3})
    assert seen(view) == (2, 3, {"a": 1, "c": 2})
    assert view.history > before


@pytest.mark.slow
def test_it_goes_on_where_the_log_was_shortened(table: Table, view: TableView, rows: Rows) -> None:
    table.append(rows(a=1), {"slice-0": 1})
    view.refresh()
    for number in range(2, 301):
        table.mark({"slice-0": number})
        table.checkpoint(100)
    assert seen(view) == (300, 300, {"a": 1})


def test_a_table_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="see that this machine has the same directory"):
        TableView(tmp_path / "nowhere", SCHEMA, []).refresh()

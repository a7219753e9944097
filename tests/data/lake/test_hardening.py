"""What is on the disk itself before anybody relies on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tocsin.data.lake.table import Table
from tocsin.errors import StorageError

Rows = Callable[..., pa.Table]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files and directories that the disk was asked to keep."""
    names: list[str] = []
    real = os.fsync

    def noting(descriptor: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    return names


def test_data_commits_and_directories_are_asked_for_and_each_file_once(
    table: Table, rows: Rows, synced: list[str]
) -> None:
    table.append(rows(a=1), {})
    table.harden()
    first = {Path(path).name for path in table.snapshot.paths()}
    assert {*first, "00000000000000000001.json", "_delta_log", table.path.name} <= set(synced)
    synced.clear()
    table.append(rows(b=2), {})
    table.harden()
    second = {Path(path).name for path in table.snapshot.paths()} - first
    assert {*second, "00000000000000000002.json"} <= set(synced)
    assert not first & set(synced)


def test_a_file_that_is_gone_meanwhile_is_nobodys_loss(table: Table, rows: Rows, synced: list[str]) -> None:
    table.append(rows(a=1), {})
    Path(table.snapshot.paths()[0]).unlink()
    table.harden()
    assert "_delta_log" in synced


def test_a_disk_that_cannot_keep_it_says_so(table: Table, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(rows(a=1), {})

    def refusing(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refusing)
    with pytest.raises(StorageError, match="Input/output error"):
        table.harden()
    monkeypatch.undo()
    table.harden()

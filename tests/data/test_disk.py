"""Asking the disk: new directories with all their parents, several files at once, and refusals that are passed on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tocsin.data.disk import Disk, make_directory, write_durably
from tocsin.data.feeds.log import FeedLog


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and directories that the disk was asked to keep."""
    paths: list[Path] = []
    real = os.fsync

    def noting(descriptor: int) -> None:
        real(descriptor)
        paths.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", noting)
    return paths


def test_the_name_of_each_new_directory_is_kept_from_the_top_down(tmp_path: Path, synced: list[Path]) -> None:
    make_directory(tmp_path / "a" / "b" / "c")
    assert synced[-3:] == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


def test_a_directory_that_somebody_made_and_did_not_keep_is_kept(tmp_path: Path, synced: list[Path]) -> None:
    (tmp_path / "made").mkdir()
    make_directory(tmp_path / "made")
    assert synced == [tmp_path]


def test_a_new_feed_is_kept_with_the_directory_that_it_is_in(tmp_path: Path, synced: list[Path]) -> None:
    with FeedLog(tmp_path / "feeds" / "reports", 2, 1024) as feed:
        feed.append({0: [b"{}"]})
    assert {tmp_path, tmp_path / "feeds", tmp_path / "feeds" / "reports"} <= set(synced)
    assert tmp_path / "feeds" / "reports" / "slice-0000" in synced


def test_content_is_kept_before_its_name(tmp_path: Path, synced: list[Path]) -> None:
    write_durably(tmp_path / "file", b"content")
    assert [path.name for path in synced] == [f"file.{os.getpid()}.draft", tmp_path.name]


def test_of_several_files_each_is_kept_and_each_refusal_is_told(tmp_path: Path, synced: list[Path]) -> None:
    files = [tmp_path / name for name in "abc"]
    for file in files:
        file.touch()
    Disk().keep(*files)
    assert sorted(synced) == files
    with pytest.raises(FileNotFoundError):
        Disk().keep(*files, tmp_path / "missing")


def test_a_disk_that_is_not_to_be_asked_is_not_asked(tmp_path: Path, synced: list[Path]) -> None:
    Disk(sync=False).keep(tmp_path, tmp_path / "missing")
    assert synced == []

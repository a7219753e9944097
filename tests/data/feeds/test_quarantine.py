"""A damaged segment that cannot be kept for a person, and a read one that cannot be removed: told, and tried again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.data.feeds import quarantine as keeping
from tocsin.data.feeds.layout import segment_name, slice_directory
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.quarantine import quarantine
from tocsin.data.feeds.reader import Damage
from tocsin.errors import StorageError

OpenLog = Callable[..., FeedLog]


@pytest.fixture
def damage(feed: Path) -> Damage:
    """Of a segment that is there."""
    directory = slice_directory(feed, 0)
    directory.mkdir(parents=True)
    (directory / segment_name(0)).write_bytes(b"rotten")
    return Damage(0, segment_name(0), 0, 6, "it is rotten")


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["make_directory", "shutil.copyfileobj", "os.fsync", "sync_directory"])
def test_a_disk_that_refuses_is_told_leaves_no_draft_and_the_next_try_keeps_it(
    feed: Path, damage: Damage, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(f"{keeping.__name__}.{step}", refuse)
        with pytest.raises(StorageError, match=r"is damaged and cannot be copied to .* \(No space left on device\)"):
            quarantine(feed, damage)
    assert list(feed.glob("quarantine/.draft-*")) == []
    kept = quarantine(feed, damage)
    assert [file.read_bytes() for file in feed.glob("quarantine/*")] == [kept.read_bytes()] == [b"rotten"]


def test_what_is_kept_is_told_until_it_is_moved_away(open_log: OpenLog, feed: Path, damage: Damage) -> None:
    kept = quarantine(feed, damage)
    log = open_log()
    assert f"1 damaged part(s) of its log could not be read; what was in them is in {kept.parent}" in log.damage()
    kept.unlink()
    assert log.damage() == ""


def test_segments_that_were_read_and_cannot_be_removed_are_told_and_removed_later(
    open_log: OpenLog, feed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(segment_bytes=1)
    for number in range(4):
        ends = log.append({0: [b"%d" % number]})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        with pytest.raises(StorageError, match=r"was read but cannot be removed \(No space left on device\)"):
            log.release(ends)
    assert len(list(feed.glob("slice-0000/*"))) == 4
    log.release(ends)
    assert len(list(feed.glob("slice-0000/*"))) == 1

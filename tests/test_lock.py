"""One process at a time has a lock, and who does not get it keeps nothing."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from tocsin.errors import ConflictError
from tocsin.lock import take_lock


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_whoever_has_it_is_named_until_it_lets_go(tmp_path: Path) -> None:
    held, before = take_lock(tmp_path / "lock", "the feed log"), open_files()
    with pytest.raises(ConflictError, match=rf"^the feed log at {tmp_path} is being written by process {os.getpid()}:"):
        take_lock(tmp_path / "lock", "the feed log")
    assert open_files() == before
    os.close(held)
    os.close(take_lock(tmp_path / "lock", "the feed log"))


@pytest.mark.parametrize(
    ("where", "call", "code"), [(fcntl, "flock", errno.ENOLCK), (os, "pwrite", errno.ENOSPC)], ids=["flock", "pwrite"]
)
def test_what_the_system_refuses_is_told_and_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, call: str, code: int
) -> None:
    before = open_files()
    with monkeypatch.context() as patched:
        patched.setattr(where, call, lambda *_: _refuse(code))
        with pytest.raises(OSError, match=os.strerror(code)):
            take_lock(tmp_path / "lock", "the feed log")
    assert open_files() == before
    os.close(take_lock(tmp_path / "lock", "the feed log"))


def _refuse(code: int) -> None:
    raise OSError(code, os.strerror(code))

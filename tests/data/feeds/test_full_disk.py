"""A disk that refuses costs an error and nothing else: nothing is half accepted, and room made is used again."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mounting import own_file_system
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.reader import Chunk, durable_ends, read
from tocsin.errors import StorageError

OpenLog = Callable[..., FeedLog]


def records(feed: Path, index: int) -> list[bytes]:
    found: list[bytes] = []
    for entry in read(feed, index, 0, durable_ends(feed)[index]):
        assert isinstance(entry, Chunk), entry
        found += entry.records
    return found


def everywhere(record: bytes) -> dict[int, list[bytes]]:
    return {index: [record] for index in range(3)}


class Refusals:
    """Makes a call of ``os`` fail from its n-th use on, until told to stop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def refuse(self, name: str, code: int, *, after: int = 0) -> None:
        real, uses = getattr(os, name), iter(range(after))

        def call(*arguments: object) -> object:
            if next(uses, None) is None:
                raise OSError(code, os.strerror(code))
            return real(*arguments)

        self._monkeypatch.setattr(os, name, call)

    def stop(self) -> None:
        self._monkeypatch.undo()


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    return Refusals(monkeypatch)


# An append to three slices writes three frames, syncs three files, then writes the ends.
@pytest.mark.parametrize(("name", "after"), [*(("pwrite", n) for n in range(4)), *(("fdatasync", n) for n in range(3))])
def test_a_refused_append_leaves_no_trace_and_may_be_made_again(
    open_log: OpenLog, feed: Path, refusals: Refusals, name: str, after: int
) -> None:
    log = open_log(slices=3)
    before = log.append(everywhere(b"1"))
    refusals.refuse(name, errno.EIO, after=after)
    with pytest.raises(StorageError, match=r"Input/output error.*nothing was accepted.*publish again"):
        log.append(everywhere(b"lost"))
    refusals.stop()
    assert log.ends() == durable_ends(feed) == before
    assert [file.stat().st_size for file in sorted(feed.glob("slice-*/*.log"))] == before
    log.append(everywhere(b"2"))
    assert [records(feed, index) for index in range(3)] == [[b"1", b"2"]] * 3
    assert log.records == 6


def test_what_cannot_be_taken_back_at_once_is_taken_back_before_the_next_append(
    open_log: OpenLog, feed: Path, refusals: Refusals
) -> None:
    log = open_log(slices=2)
    refusals.refuse("fdatasync", errno.EIO)
    refusals.refuse("ftruncate", errno.EIO)
    for _ in range(2):
        with pytest.raises(StorageError, match="nothing was accepted"):
            log.append({0: [b"a long record that must not linger"], 1: [b"another"]})
    refusals.stop()
    assert durable_ends(feed) == [0, 0]
    ends = log.append({0: [b"1"]})
    assert (feed / "slice-0000" / f"{0:020d}.log").stat().st_size == ends[0]
    log.append({1: [b"2"]})
    assert [records(feed, index) for index in range(2)] == [[b"1"], [b"2"]]


def test_a_segment_that_cannot_be_started_is_started_by_the_next_append(
    open_log: OpenLog, feed: Path, refusals: Refusals
) -> None:
    log = open_log(segment_bytes=1)
    log.append({0: [b"1"]})
    refusals.refuse("fsync", errno.ENOSPC)
    with pytest.raises(StorageError, match=r"the disk is full.*free space at"):
        log.append({0: [b"lost"]})
    refusals.stop()
    log.append({0: [b"2"]})
    assert records(feed, 0) == [b"1", b"2"]


def test_readers_see_the_new_ends_only_after_every_file_is_synced(
    open_log: OpenLog, feed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(slices=3, segment_bytes=100)
    seen: list[list[int]] = []
    real = os.fdatasync

    def watched(descriptor: int) -> None:
        seen.append(durable_ends(feed))
        real(descriptor)
        seen.append(durable_ends(feed))

    monkeypatch.setattr(os, "fdatasync", watched)
    for number in range(10):
        before = log.ends()
        after = log.append(everywhere(b"%09d" % number))
        assert seen == [before] * 6
        assert durable_ends(feed) == after != before
        seen.clear()


LIMITED = """
import resource, sys
from pathlib import Path
from tocsin.data.feeds.log import FeedLog
from tocsin.errors import StorageError

log = FeedLog(Path(sys.argv[1]), 2, 1 << 20).open()
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
accepted = 0
try:
    while True:
        before = log.append({0: [b"%d" % accepted], 1: [b"%d" % accepted, b"x" * 990]})
        accepted += 1
except StorageError as error:
    print(error, file=sys.stderr)
assert log.ends() == before
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
log.append({0: [b"%d" % accepted], 1: [b"%d" % accepted]})
print(accepted + 1)
"""

FULL = """
import sys
from pathlib import Path
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.reader import durable_ends, read
from tocsin.errors import StorageError

feed = Path(sys.argv[1]) / "feed"
log = FeedLog(feed, 2, 8192).open()
ballast = Path(sys.argv[1]) / "ballast"
ballast.write_bytes(bytes(100_000))
accepted = 0

def fill():
    global accepted
    try:
        while True:
            log.append({index: [b"%d" % accepted, b"x" * 990] for index in range(2)})
            accepted += 1
    except StorageError as error:
        print(error, file=sys.stderr)
        assert log.ends() == durable_ends(feed)

fill()
log.close()
log.open()
once = accepted
fill()
ballast.unlink()
fill()
assert accepted > once + 20
for index, end in enumerate(log.ends()):
    numbers = [int(chunk.records[0]) for chunk in read(feed, index, 0, end)]
    assert numbers == list(range(accepted)), numbers
print(accepted)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=60, check=False)


@pytest.mark.process
def test_a_process_that_reaches_a_real_limit_resumes_when_it_is_lifted(feed: Path) -> None:
    done = run(sys.executable, "-c", LIMITED, str(feed))
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stderr
    assert "nothing was accepted" in done.stderr
    expected = [b"%d" % number for number in range(int(done.stdout))]
    assert records(feed, 0) == [record for record in records(feed, 1) if record.isdigit()] == expected


@pytest.mark.process
def test_a_really_full_disk_is_told_survived_and_reopened_and_room_is_used_again(tmp_path: Path) -> None:
    done = run(*own_file_system(tmp_path, "256k"), sys.executable, "-c", FULL, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the disk is full: nothing was accepted; free space at") == 3
    assert int(done.stdout) > 0

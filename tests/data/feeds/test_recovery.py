"""After any crash the log opens, holds all that was acknowledged, and never uses a position twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.reader import Chunk, Damage, Entry, durable_ends, read

OpenLog = Callable[..., FeedLog]


def entries(feed: Path, index: int = 0, start: int = 0) -> list[Entry]:
    return list(read(feed, index, start, durable_ends(feed)[index]))


def records(feed: Path, index: int = 0) -> list[bytes]:
    return [record for entry in entries(feed, index) if isinstance(entry, Chunk) for record in entry.records]


def newest(feed: Path) -> Path:
    return max((feed / "slice-0000").iterdir())


def test_a_torn_tail_is_cut_off_at_the_last_whole_frame(open_log: OpenLog, feed: Path) -> None:
    log = open_log()
    acknowledged = log.append({0: [b"1", b"2"]})
    ends_file = (feed / "ends").read_bytes()
    whole = log.append({0: [b"3", b"4"]})
    log.close()
    content = newest(feed).read_bytes()
    # The writer dies somewhere in its second append: the ends file still tells of the first one.
    for size in range(acknowledged[0], whole[0]):
        newest(feed).write_bytes(content[:size])
        (feed / "ends").write_bytes(ends_file)
        with FeedLog(feed, 1, 1 << 20) as log:
            assert log.ends() == durable_ends(feed) == acknowledged
            assert newest(feed).stat().st_size == acknowledged[0]
            log.append({0: [b"5"]})
        assert records(feed) == [b"1", b"2", b"5"]
        assert all(isinstance(entry, Chunk) for entry in entries(feed))


def test_a_whole_frame_that_was_never_acknowledged_is_kept(open_log: OpenLog, feed: Path) -> None:
    log = open_log()
    log.append({0: [b"1"]})
    ends_file = (feed / "ends").read_bytes()
    whole = log.append({0: [b"2"]})
    log.close()
    (feed / "ends").write_bytes(ends_file)
    assert open_log().ends() == whole
    assert records(feed) == [b"1", b"2"]


@pytest.mark.parametrize("content", [None, b"", b"garbage", bytes(12), b"\xff" * 12])
def test_the_ends_are_found_again_without_the_file_that_tells_them(
    open_log: OpenLog, feed: Path, content: bytes | None
) -> None:
    log = open_log(segment_bytes=40)
    ends = [log.append({0: [b"%030d" % number]}) for number in range(5)][-1]
    log.close()
    (feed / "ends").unlink()
    if content is not None:
        (feed / "ends").write_bytes(content)
    assert open_log(segment_bytes=40).ends() == durable_ends(feed) == ends


def test_acknowledged_records_that_rot_in_the_tail_are_reported_not_cut_off(open_log: OpenLog, feed: Path) -> None:
    log = open_log()
    first = log.append({0: [b"1"]})[0]
    second = log.append({0: [b"2"]})[0]
    log.close()
    content = bytearray(newest(feed).read_bytes())
    content[-1] ^= 1
    newest(feed).write_bytes(content)
    open_log().append({0: [b"3"]})
    one, damage, three = entries(feed)
    assert isinstance(damage, Damage)
    assert (damage.start, damage.end) == (first, second)
    assert [entry.records for entry in (one, three) if isinstance(entry, Chunk)] == [[b"1"], [b"3"]]


@pytest.mark.parametrize("lost", ["half", "emptied", "removed"])
def test_positions_go_on_behind_acknowledged_data_that_was_lost(open_log: OpenLog, feed: Path, lost: str) -> None:
    log = open_log()
    end = log.append({0: [b"1", b"2"]})[0]
    log.close()
    if lost == "removed":
        newest(feed).unlink()
    else:
        os.truncate(newest(feed), end // 2 if lost == "half" else 0)
    log = open_log()
    assert log.ends() == [end]
    log.append({0: [b"3"]})
    *damages, last = entries(feed)
    assert damages
    assert all(isinstance(damage, Damage) for damage in damages)
    assert damages[-1].position == end
    assert isinstance(last, Chunk)
    assert last.records == [b"3"]


def test_a_log_lost_as_a_whole_goes_on_behind_what_was_read(open_log: OpenLog, feed: Path) -> None:
    log = open_log(slices=2, read=(1000, 0))
    assert log.ends() == durable_ends(feed) == [1000, 0]
    log.append({0: [b"1"]})
    (entry,) = entries(feed, start=1000)
    assert isinstance(entry, Chunk)
    assert entry.records == [b"1"]


APPENDER = """
import sys
from pathlib import Path
from tocsin.data.feeds.log import FeedLog

log = FeedLog(Path(sys.argv[1]), 4, 4096).open()
number = int(sys.argv[2])
while True:
    log.append({index: [b"%d" % number, b"x" * (number % 700)] for index in range(number % 4 + 1)})
    print(number, flush=True)
    number += 1
"""


@pytest.mark.process
def test_records_acknowledged_by_a_killed_process_are_all_there(feed: Path) -> None:
    acknowledged: list[int] = []
    for reads in (1, 7, 20, 43, 90):
        arguments = [sys.executable, "-c", APPENDER, str(feed), str(acknowledged[-1] + 1 if acknowledged else 0)]
        with subprocess.Popen(
            arguments, stdout=subprocess.PIPE, env={"PYTHONPATH": os.pathsep.join(sys.path)}
        ) as child:
            assert child.stdout is not None
            acknowledged += [int(child.stdout.readline()) for _ in range(reads)]
            child.kill()
            acknowledged += [int(line) for line in child.stdout if line.endswith(b"\n")]
        with FeedLog(feed, 4, 4096) as log:
            assert log.ends() == durable_ends(feed)
        for index in range(4):
            assert all(isinstance(entry, Chunk) for entry in entries(feed, index))
            found = {int(record) for record in records(feed, index) if record.isdigit()}
            expected = {number for number in acknowledged if number % 4 >= index}
            # The one append under way when the process died may be there or not.
            assert expected <= found <= expected | {acknowledged[-1] + 1}

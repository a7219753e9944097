"""What is appended is there for readers, position by position, through segments, releases and reopenings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.reader import Chunk, durable_ends, read
from tocsin.errors import ConflictError, StorageError, UnavailableError

OpenLog = Callable[..., FeedLog]


def records(feed: Path, index: int = 0, start: int = 0) -> list[bytes]:
    """What is in a slice, which must be undamaged."""
    found: list[bytes] = []
    for entry in read(feed, index, start, durable_ends(feed)[index]):
        assert isinstance(entry, Chunk), entry
        found += entry.records
    return found


def segments(feed: Path, index: int = 0) -> list[str]:
    return sorted(file.name for file in (feed / f"slice-{index:04d}").iterdir())


appends = st.lists(
    st.dictionaries(st.integers(0, 2), st.lists(st.binary(max_size=60).map(bytes.hex).map(str.encode), max_size=4)),
    max_size=8,
)


@settings(deadline=None)
@given(appends, st.integers(1, 300), st.integers(1, 3))
def test_every_slice_gives_back_its_records_in_order_after_any_reopening(
    tmp_path_factory: pytest.TempPathFactory, written: list[dict[int, list[bytes]]], segment_bytes: int, every: int
) -> None:
    feed = tmp_path_factory.mktemp("feed")
    log = FeedLog(feed, 3, segment_bytes).open()
    for number, batches in enumerate(written):
        ends = log.append(batches)
        assert ends == log.ends() == durable_ends(feed)
        if number % every == 0:
            log.close()
            log.open()
            assert log.ends() == ends
    log.close()
    for index in range(3):
        assert records(feed, index) == [record for batches in written for record in batches.get(index, [])]


def test_an_append_touches_only_its_slices(open_log: OpenLog, feed: Path) -> None:
    log = open_log(slices=3)
    ends = log.append({1: [b"{}"], 2: []})
    assert ends[0] == ends[2] == 0 < ends[1]
    assert log.append({}) == ends
    assert [records(feed, index) for index in range(3)] == [[], [b"{}"], []]


def test_a_full_segment_is_followed_by_one_named_by_its_first_position(open_log: OpenLog, feed: Path) -> None:
    log = open_log(segment_bytes=30)
    ends = [log.append({0: [b"%020d" % number]})[0] for number in range(3)]
    assert segments(feed) == [f"{base:020d}.log" for base in (0, *ends[:2])]
    assert records(feed) == [b"%020d" % number for number in range(3)]
    assert records(feed, start=ends[0]) == [b"%020d" % number for number in (1, 2)]


def test_released_segments_are_gone_and_the_rest_is_still_read(open_log: OpenLog, feed: Path) -> None:
    log = open_log(segment_bytes=1)
    ends = [log.append({0: [b"%d" % number]})[0] for number in range(4)]
    log.release([ends[1] - 1])
    assert len(segments(feed)) == 3
    log.release([ends[1]])
    assert segments(feed) == [f"{base:020d}.log" for base in ends[1:3]]
    assert records(feed, start=ends[1]) == [b"2", b"3"]


def test_the_newest_segment_is_never_released_so_positions_never_begin_anew(open_log: OpenLog, feed: Path) -> None:
    log = open_log(segment_bytes=1)
    ends = log.append({0: [b"1"]})
    log.release(ends)
    assert len(segments(feed)) == 1
    log.append({0: [b"2"]})
    log.release(log.ends())
    log.close()
    (feed / "ends").unlink()
    assert open_log(segment_bytes=1).ends() > ends


def test_appending_and_releasing_at_the_same_time_lose_nothing_unread(open_log: OpenLog, feed: Path) -> None:
    log = open_log(slices=2, segment_bytes=64)
    appender = threading.Thread(target=lambda: [log.append({0: [b"%d" % n], 1: [b"%d" % n]}) for n in range(200)])
    appender.start()
    found: tuple[list[bytes], list[bytes]] = ([], [])
    starts = [0, 0]
    while appender.is_alive() or starts != log.ends():
        ends = durable_ends(feed)
        for index in range(2):
            for entry in read(feed, index, starts[index], ends[index]):
                assert isinstance(entry, Chunk), entry
                found[index].extend(entry.records)
        log.release(ends)
        starts = ends
    appender.join()
    assert found == ([b"%d" % number for number in range(200)],) * 2
    assert len(segments(feed)) == 1


def test_the_backlog_is_what_lies_between_given_positions_and_the_ends(open_log: OpenLog) -> None:
    log = open_log(slices=2)
    first = log.append({0: [b"1"], 1: [b"22"]})
    last = log.append({1: [b"333"]})
    assert log.backlog([0, 0]) == sum(last)
    assert log.backlog(first) == last[1] - first[1]
    assert log.backlog(last) == 0


def test_records_and_bytes_are_counted(open_log: OpenLog) -> None:
    log = open_log(slices=2)
    ends = log.append({0: [b"1", b"2"], 1: [b"3"]})
    assert (log.records, log.bytes) == (3, sum(ends))


def test_a_second_writer_is_refused_and_the_first_goes_on(open_log: OpenLog, feed: Path) -> None:
    log = open_log()
    with pytest.raises(ConflictError, match="is being written by process"):
        open_log()
    log.append({0: [b"{}"]})
    assert records(feed) == [b"{}"]


def test_another_number_of_slices_is_refused_and_changes_nothing(open_log: OpenLog, feed: Path) -> None:
    open_log(slices=4).close()
    with pytest.raises(ConflictError, match="has 4 slices and cannot be opened with 8"):
        open_log(slices=8)
    assert len(open_log(slices=4).ends()) == 4


def test_a_damaged_meta_file_is_refused_with_what_to_do(open_log: OpenLog, feed: Path) -> None:
    open_log().close()
    (feed / "meta.json").write_bytes(b"{")
    with pytest.raises(StorageError, match="restore it as"):
        open_log()


def test_a_path_that_cannot_be_a_directory_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be opened"):
        FeedLog(tmp_path / "file", 1, 100).open()


def test_a_closed_log_takes_nothing(open_log: OpenLog) -> None:
    log = open_log()
    log.close()
    with pytest.raises(UnavailableError, match="is closed"):
        log.append({0: [b"{}"]})
    with pytest.raises(UnavailableError, match="is closed"):
        log.ends()


@pytest.mark.parametrize("index", [-1, 2])
def test_a_slice_that_does_not_exist_is_refused_before_anything_is_written(open_log: OpenLog, index: int) -> None:
    log = open_log(slices=2)
    with pytest.raises(ValueError, match="numbered 0 to 1"):
        log.append({0: [b"{}"], index: [b"{}"]})
    assert log.ends() == [0, 0]


def test_a_log_without_a_writer_yet_says_so_to_readers(feed: Path) -> None:
    with pytest.raises(UnavailableError, match="start the server"):
        durable_ends(feed)

"""A batch takes about what it was allowed, fairly, and never splits a frame."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.data.feeds.batch import bounded_ends, fair_shares
from tocsin.data.feeds.frame import DIVIDED_BYTES, HEADER_BYTES
from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.reader import Entry, read

OpenLog = Callable[..., FeedLog]


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=20), st.integers(1, 50_000))
def test_shares_are_fair_within_the_total(lengths: list[int], total: int) -> None:
    shares = fair_shares(lengths, total)
    assert sum(shares) <= max(total, len(lengths))
    assert all(min(length, 1) <= share <= length for share, length in zip(shares, lengths, strict=True))
    cut = [share for share, length in zip(shares, lengths, strict=True) if share < length]
    assert all(max(shares) - share <= 1 for share in cut)


def test_a_batch_that_fits_takes_everything(open_log: OpenLog, feed: Path) -> None:
    ends = open_log(slices=2).append({0: [b"1"], 1: [b"22"]})
    assert bounded_ends(feed, [0, 0], ends, sum(ends)) == ends


def test_a_short_slice_leaves_its_share_to_the_others(open_log: OpenLog, feed: Path) -> None:
    log = open_log(slices=3)
    log.append({0: [b"only"]})
    for _ in range(100):
        log.append({1: [b"x" * 84], 2: [b"y" * 84]})
    ends = bounded_ends(feed, [0, 0, 0], log.ends(), 2020)
    assert ends == [log.ends()[0], 1000, 1000]


def batches(feed: Path, last: list[int], max_bytes: int) -> list[list[Entry]]:
    """Every slice read batch by batch until the end; each batch must go forward."""
    found: list[list[Entry]] = [[] for _ in last]
    starts = [0] * len(last)
    while starts != last:
        ends = bounded_ends(feed, starts, last, max_bytes)
        assert all(start < end <= limit or start == limit for start, end, limit in zip(starts, ends, last, strict=True))
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            found[index] += read(feed, index, start, end)
        starts = ends
    return found


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.integers(0, 1), st.lists(st.just(b"{}" * 9), min_size=1, max_size=5)), max_size=12),
    st.integers(1, 400),
    st.integers(1, 400),
)
def test_reading_in_batches_gives_what_reading_at_once_gives(
    tmp_path_factory: pytest.TempPathFactory, appends: list[dict[int, list[bytes]]], segment: int, max_bytes: int
) -> None:
    feed = tmp_path_factory.mktemp("feed")
    with FeedLog(feed, 2, segment) as log:
        for append in appends:
            log.append(append)
        last = log.ends()
    assert batches(feed, last, max_bytes) == [list(read(feed, index, 0, last[index])) for index in range(2)]


@pytest.mark.parametrize("max_bytes", [1, 50, 120])
def test_damage_anywhere_splits_no_frame_of_any_batch(open_log: OpenLog, feed: Path, max_bytes: int) -> None:
    log = open_log(segment_bytes=100)
    for number in range(6):
        log.append({0: [b"%020d" % number]})
    last = log.ends()
    for file in sorted((feed / "slice-0000").iterdir()):
        content = file.read_bytes()
        for at in range(len(content)):
            file.write_bytes(content[:at] + bytes([content[at] ^ 0x04]) + content[at + 1 :])
            assert batches(feed, last, max_bytes) == [list(read(feed, 0, 0, last[0]))]
        file.unlink()
        assert batches(feed, last, 1)[0][-1] == list(read(feed, 0, 0, last[0]))[-1]
        file.write_bytes(content)


def test_a_frame_larger_than_the_batch_is_taken_whole(open_log: OpenLog, feed: Path) -> None:
    log = open_log()
    first = log.append({0: [b"x" * 700_000]})
    log.append({0: [b"y" * 700_000]})
    assert bounded_ends(feed, [0], log.ends(), 10) == first


def test_however_much_is_appended_at_once_a_batch_is_as_large_as_it_may_be(open_log: OpenLog, feed: Path) -> None:
    last = open_log().append({0: [b"x" * 1_000] * 20_000})
    sizes, start = [], 0
    while start < last[0]:
        (end,) = bounded_ends(feed, [start], last, 4_000_000)
        sizes.append(end - start)
        start = end
    assert max(sizes) < 4_000_000 + DIVIDED_BYTES + 1_000
    assert len(sizes) == 5


def next_size(log: FeedLog, starts: list[int], most: int = 16 << 20) -> int:
    """How much the next batch has of all slices, from these positions on."""
    return sum(log.batch_ends(starts, most, range(len(starts)))) - sum(starts)


def test_a_new_process_begins_with_a_mebibyte_and_doubles_it_with_each_batch_that_is_stored(open_log: OpenLog) -> None:
    log = open_log()
    for _ in range(200):
        log.append({0: [b"x" * 1_000] * 200})
    sizes = []
    for _ in range(6):
        sizes.append(next_size(log, [0]))
        log.took(sizes[-1])
    frame = 201_000
    assert 1 << 20 <= sizes[0] < (1 << 20) + frame
    assert all(later < 2 * before + frame for before, later in pairwise(sizes))
    assert 16 << 20 <= sizes[-1] < (16 << 20) + frame


def test_rows_that_are_many_times_as_large_as_their_text_are_read_by_less(open_log: OpenLog) -> None:
    log = open_log()
    log.append({0: [b"x" * 1_000] * 40_000})
    for _ in range(5):
        size = next_size(log, [0])
        log.took(size)
    assert next_size(log, [0]) > 15 << 20
    log.took(64 * size)
    assert next_size(log, [0]) < 6 << 20
    log.took(next_size(log, [0]))
    assert next_size(log, [0]) < 8 << 20


def test_what_failed_is_read_by_less_of_its_slices_down_to_a_frame_whatever_becomes_of_others(
    open_log: OpenLog,
) -> None:
    log = open_log(slices=2)
    for _ in range(3_000):
        log.append({0: [b"x" * 1_000], 1: [b"y" * 1_000]})
    sizes = []
    for _ in range(4):
        first, _ = log.batch_ends([0, 0], 16 << 20, [0])
        sizes.append(first)
        log.failed()
        # The others go on meanwhile, and come to all they may have.
        _, second = log.batch_ends([0, 0], 16 << 20, [1])
        log.took(second)
    assert sizes[0] > 1 << 20
    assert sizes[1] < 70_000
    assert sizes[2] < 6_000
    frame = 1_000 + HEADER_BYTES
    assert sizes[3] == frame
    grown = []
    for _ in range(3):
        first, _ = log.batch_ends([0, 0], 16 << 20, [0])
        log.took(first)
        grown.append(first // frame)
    assert grown == [1, 3, 7] or grown == [1, 2, 4]

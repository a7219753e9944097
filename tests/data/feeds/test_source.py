"""The feed log as a streaming source, as Spark drives it but without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.source import FeedReader, FeedSource

OpenLog = Callable[..., FeedLog]


def reader(feed: Path, positions: list[int], max_bytes: int = 1 << 20, readers: int = 2) -> FeedReader:
    return FeedReader(feed, positions, max_bytes, readers)


def lines(reader: FeedReader, start: dict[str, int], end: dict[str, int]) -> list[tuple[int, str | None, str | None]]:
    return [
        (row["slice"], row["line"], row["damage"])
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def test_a_query_begins_at_the_positions_it_was_given_and_ends_where_the_log_is_durable(
    open_log: OpenLog, feed: Path
) -> None:
    log = open_log(slices=3)
    begin = log.append({0: [b"0"], 1: [b"1"]})
    end = log.append({1: [b"2", b"3"], 2: [b"4"]})
    source = reader(feed, begin)
    start = source.initialOffset()
    latest = source.latestOffset(start, ReadAllAvailable())
    assert (start, latest) == ({str(i): p for i, p in enumerate(begin)}, {str(i): p for i, p in enumerate(end)})
    assert sorted(lines(source, start, latest)) == [(1, "2", None), (1, "3", None), (2, "4", None)]


def test_the_same_range_gives_the_same_lines_to_any_reader(open_log: OpenLog, feed: Path) -> None:
    log = open_log(slices=2)
    ends = log.append({0: [b"a", b"b"], 1: [b"c"]})
    log.append({0: [b"later"]})
    offsets = ({"0": 0, "1": 0}, {str(i): end for i, end in enumerate(ends)})
    assert lines(reader(feed, [0, 0]), *offsets) == lines(reader(feed, [5, 5], readers=1), *offsets)


def test_a_micro_batch_is_bounded_and_the_next_goes_on_behind_it(open_log: OpenLog, feed: Path) -> None:
    log = open_log(slices=2)
    for number in range(20):
        log.append({index: [b"%d" % number + b"x" * 500] for index in range(2)})
    source = reader(feed, [0, 0], max_bytes=4000)
    found: list[tuple[int, str | None, str | None]] = []
    start, batches = source.initialOffset(), 0
    while (end := source.latestOffset(start, ReadAllAvailable())) != start:
        found += lines(source, start, end)
        start, batches = end, batches + 1
    assert 4 <= batches <= 8
    for index in range(2):
        numbers = [int((line or "").rstrip("x")) for slice_, line, _ in found if slice_ == index]
        assert numbers == list(range(20))


def test_a_slice_is_read_by_one_task_and_tasks_are_no_more_than_readers(open_log: OpenLog, feed: Path) -> None:
    log = open_log(slices=5)
    ends = log.append({index: [b"x" * 600_000] for index in range(5)})
    source = reader(feed, [0] * 5, readers=2)
    start, end = source.initialOffset(), {str(i): position for i, position in enumerate(ends)}
    parts = [part.ranges for part in source.partitions(start, end)]  # type: ignore[attr-defined]
    assert len(parts) == 2
    assert sorted(index for ranges in parts for index, _, _ in ranges) == list(range(5))
    assert len(source.partitions(end, end)) == 1, "an empty batch has a task too"


def test_a_small_batch_is_read_by_a_single_task(open_log: OpenLog, feed: Path) -> None:
    ends = open_log(slices=5).append({index: [b"x" * 1000] for index in range(5)})
    source = reader(feed, [0] * 5, readers=2)
    end = {str(i): position for i, position in enumerate(ends)}
    assert len(source.partitions(source.initialOffset(), end)) == 1


def test_a_damaged_part_is_one_line_that_says_so_and_is_quarantined(open_log: OpenLog, feed: Path) -> None:
    log = open_log(slices=1)
    log.append({0: [b"first"]})
    middle = log.append({0: [b"second"]})[0]
    log.append({0: [b"third"]})
    segment = next(feed.glob("slice-0000/*.log"))
    content = bytearray(segment.read_bytes())
    content[middle - 2] ^= 0xFF
    segment.write_bytes(content)
    source = reader(feed, [0])
    found = lines(source, {"0": 0}, source.latestOffset({"0": 0}, ReadAllAvailable()))
    assert [line for _, line, damage in found if damage is None] == ["first", "third"]
    [damage] = [damage for _, _, damage in found if damage is not None]
    assert "slice 0" in damage
    [kept] = (feed / "quarantine").iterdir()
    assert str(kept) in damage
    assert kept.read_bytes() == bytes(content)


@pytest.mark.parametrize("readers", [1, 8])
def test_the_source_is_made_from_its_options(open_log: OpenLog, feed: Path, readers: int) -> None:
    open_log(slices=2).append({1: [b"x"]})
    options = {"path": str(feed), "positions": "[0, 0]", "maxBytes": "1000", "readers": str(readers)}
    source = FeedSource(options)
    made = source.streamReader(source.schema())
    assert made.initialOffset() == {"0": 0, "1": 0}
    assert FeedSource.name() == "tocsin-feed"

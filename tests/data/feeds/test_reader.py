"""A reader covers its range without a hole: each position is a record's, or reported as damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.data.feeds.log import FeedLog
from tocsin.data.feeds.quarantine import quarantine
from tocsin.data.feeds.reader import Chunk, Damage, Entry, read
from tocsin.errors import StorageError

OpenLog = Callable[..., FeedLog]


def lines(entries: list[Entry]) -> list[bytes]:
    return [record for entry in entries if isinstance(entry, Chunk) for record in entry.records]


def damages(entries: list[Entry]) -> list[Damage]:
    return [entry for entry in entries if isinstance(entry, Damage)]


@pytest.fixture
def ends(open_log: OpenLog) -> list[int]:
    """Six frames of two records, two frames per segment; the positions after each."""
    log = open_log(segment_bytes=40)
    return [log.append({0: [b"a%d" % number, b"b%06d" % number]})[0] for number in range(6)]


def segment(feed: Path, number: int) -> Path:
    return sorted((feed / "slice-0000").iterdir())[number]


def test_the_fixture_fills_three_segments(feed: Path, ends: list[int]) -> None:
    assert [int(segment(feed, number).stem) for number in range(3)] == [0, ends[1], ends[3]]


def test_adjoining_ranges_give_what_one_range_gives(feed: Path, ends: list[int]) -> None:
    whole = list(read(feed, 0, 0, ends[-1]))
    assert len(whole) == 6
    for end in ends:
        assert [*read(feed, 0, 0, end), *read(feed, 0, end, ends[-1])] == whole


def test_positions_are_those_after_each_chunk(feed: Path, ends: list[int]) -> None:
    assert [entry.position for entry in read(feed, 0, 0, ends[-1])] == ends


def test_an_empty_range_has_no_entries(feed: Path, ends: list[int]) -> None:
    assert list(read(feed, 0, ends[2], ends[2])) == []


def test_nothing_beyond_the_end_is_read(feed: Path, ends: list[int]) -> None:
    segment(feed, 0).write_bytes(segment(feed, 0).read_bytes()[: ends[0]] + b"not to be looked at")
    assert lines(list(read(feed, 0, 0, ends[0]))) == [b"a0", b"b000000"]


def test_any_flipped_byte_costs_its_own_frame_and_nothing_else(feed: Path, ends: list[int]) -> None:
    intact = list(read(feed, 0, 0, ends[-1]))
    size = ends[0]
    for file in sorted((feed / "slice-0000").iterdir()):
        content = file.read_bytes()
        for at in range(len(content)):
            broken = bytearray(content)
            broken[at] ^= 0x01
            file.write_bytes(broken)
            hit = (int(file.stem) + at) // size
            found = list(read(feed, 0, 0, ends[-1]))
            assert [entry for entry in found if isinstance(entry, Chunk)] == intact[:hit] + intact[hit + 1 :]
            (damage,) = damages(found)
            assert (damage.slice, damage.segment) == (0, file.name)
            assert (damage.start, damage.end) == (hit * size, ends[hit])
        file.write_bytes(content)


@pytest.mark.parametrize("fill", [b"\x00", b"\xff", b"\n"])
def test_an_overwritten_region_is_one_damage(feed: Path, ends: list[int], fill: bytes) -> None:
    content = segment(feed, 1).read_bytes()
    segment(feed, 1).write_bytes(fill * (ends[2] - ends[1] + 3) + content[ends[2] - ends[1] + 3 :])
    found = list(read(feed, 0, 0, ends[-1]))
    assert lines(found) == [b"a0", b"b000000", b"a1", b"b000001", b"a4", b"b000004", b"a5", b"b000005"]
    assert [(damage.start, damage.end) for damage in damages(found)] == [(ends[1], ends[3])]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_missing_segment_is_reported_and_passed_over(feed: Path, ends: list[int], number: int) -> None:
    intact = list(read(feed, 0, 0, ends[-1]))
    name = segment(feed, number).name
    segment(feed, number).unlink()
    found = list(read(feed, 0, 0, ends[-1]))
    assert damages(found) == [
        Damage(0, name, int(name.removesuffix(".log")), ends[2 * number + 1], "the segment is missing")
    ]
    assert [entry for entry in found if isinstance(entry, Chunk)] == intact[: 2 * number] + intact[2 * number + 2 :]


def test_a_slice_without_its_directory_is_missing_as_a_whole(feed: Path, ends: list[int]) -> None:
    shutil.rmtree(feed / "slice-0000")
    (damage,) = read(feed, 0, 0, ends[-1])
    assert damage == Damage(0, f"{0:020d}.log", 0, ends[-1], "the segment is missing")


def test_a_segment_cut_short_anywhere_loses_only_what_is_cut(feed: Path, ends: list[int]) -> None:
    content = segment(feed, 0).read_bytes()
    for size in range(len(content)):
        segment(feed, 0).write_bytes(content[:size])
        found = list(read(feed, 0, 0, ends[-1]))
        kept = 1 if size >= ends[0] else 0
        assert lines(found)[: 2 * kept] == [b"a0", b"b000000"][: 2 * kept]
        assert lines(found)[2 * kept :] == [line for n in range(2, 6) for line in (b"a%d" % n, b"b%06d" % n)]
        hurt = damages(found)
        assert hurt[0].start == (ends[0] if kept else 0)
        assert hurt[-1].end == ends[1]
        # Cut exactly between two frames, it looks like a whole segment whose successor is missing.
        assert hurt[-1].reason == f"the segment is {'missing' if size == ends[0] else 'cut short'}"


def test_a_segment_the_system_will_not_read_is_an_error_not_a_loss(feed: Path, ends: list[int]) -> None:
    file = segment(feed, 1)
    file.unlink()
    file.mkdir()
    with pytest.raises(StorageError, match="move the file away"):
        list(read(feed, 0, 0, ends[-1]))


def test_a_damaged_segment_is_kept_once_as_it_was_found(feed: Path, ends: list[int]) -> None:
    content = b"?" + segment(feed, 1).read_bytes()[1:]
    segment(feed, 1).write_bytes(content)
    (damage,) = damages(list(read(feed, 0, 0, ends[-1])))
    kept = quarantine(feed, damage)
    assert kept.read_bytes() == content
    segment(feed, 1).write_bytes(b"changed since")
    assert quarantine(feed, damage) == kept
    assert kept.read_bytes() == content
    assert list((feed / "quarantine").iterdir()) == [kept]


def test_of_a_missing_segment_a_note_is_kept(feed: Path, ends: list[int]) -> None:
    segment(feed, 1).unlink()
    (damage,) = damages(list(read(feed, 0, 0, ends[-1])))
    kept = quarantine(feed, damage)
    assert kept == quarantine(feed, damage)
    assert kept.read_text() == f"{damage}\n"
    assert f"positions {ends[1]} to {ends[3]}: the segment is missing" in str(damage)

"""The feed log as other processes read it, by path: from any position a batch began or ended at.

Ranges are given by positions that came from :func:`durable_ends`, from
:func:`~tocsin.data.feeds.batch.bounded_ends` or from an earlier range's end: these never fall inside a frame. The same
range always gives the same entries, because nothing below a durable end changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tocsin.data.feeds.ends import read_ends
from tocsin.data.feeds.frame import Frame, InvalidSpan, scan
from tocsin.data.feeds.layout import Segment, segment_name, segments_between
from tocsin.errors import StorageError, UnavailableError


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records that were appended together, as newline-separated JSON; ``position`` is where the next entry begins."""

    payload: bytes
    count: int
    position: int

    @property
    def records(self) -> list[bytes]:
        """The records one by one."""
        return self.payload.split(b"\n")


@dataclass(frozen=True, slots=True)
class Damage:
    """Positions of a slice, from ``start`` up to ``end``, whose records cannot be read any more."""

    slice: int
    segment: str
    start: int
    end: int
    reason: str

    @property
    def position(self) -> int:
        """Where the next entry begins."""
        return self.end

    def __str__(self) -> str:
        return f"slice {self.slice}, segment {self.segment}, positions {self.start} to {self.end}: {self.reason}"


Entry = Chunk | Damage


def durable_ends(path: Path) -> list[int]:
    """Up to where each slice of the feed log at ``path`` may be read."""
    ends = read_ends(path)
    if ends is None:
        raise UnavailableError(
            f"the feed log at {path} does not say how far it may be read: "
            "start the server that writes it, which makes that file anew"
        )
    return ends


def read(path: Path, index: int, start: int, end: int) -> Iterator[Entry]:
    """What slice ``index`` holds from ``start`` up to ``end``, holding at most one segment in memory.

    The entries cover the range without a hole: what is damaged or missing is an entry too.

    Raises:
        StorageError: a file is there but the system will not let us read it. Nothing is skipped over.
    """
    position = start
    for segment in segments_between(path, index, start, end):
        if position < segment.base:
            yield _missing(index, position, segment.base)
            position = segment.base
        for entry in _segment_entries(index, segment, position):
            yield entry
            position = entry.position
    if position < end:
        yield _missing(index, position, end)


def _segment_entries(index: int, segment: Segment, start: int) -> Iterator[Entry]:
    data = read_segment(segment, start, segment.limit)
    if data is None:
        yield _missing(index, start, segment.limit)
        return
    torn = not data and start == segment.base
    for item in scan(data):
        torn = isinstance(item, InvalidSpan)
        yield _entry(index, segment, start, item)
    end = start + len(data)
    if end < segment.limit and torn:
        yield Damage(index, segment.file.name, end, segment.limit, "the segment is cut short")
    elif end < segment.limit:
        # A file that ends with a whole frame is taken for whole: the segment that followed it is gone.
        yield _missing(index, end, segment.limit)


def _entry(index: int, segment: Segment, start: int, item: Frame | InvalidSpan) -> Entry:
    if isinstance(item, Frame):
        return Chunk(item.payload, item.records, start + item.end)
    return Damage(index, segment.file.name, start + item.start, start + item.end, str(item.flaw))


def read_segment(segment: Segment, start: int, end: int) -> bytes | None:
    """The bytes at these positions, as far as the file goes; None if there is no such file any more."""
    try:
        with segment.file.open("rb") as stream:
            stream.seek(start - segment.base)
            return stream.read(end - start)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(
            f"{segment.file} cannot be read ({error.strerror}): repair the disk, "
            "or move the file away to go on without its records"
        ) from error


def _missing(index: int, start: int, end: int) -> Damage:
    return Damage(index, segment_name(start), start, end, "the segment is missing")

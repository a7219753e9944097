"""How far the next micro-batch goes: a fair share of every slice, ending between frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tocsin.data.feeds.frame import MAGIC, next_frame
from tocsin.data.feeds.layout import segments_between
from tocsin.data.feeds.pace import BytePace
from tocsin.data.feeds.reader import Chunk, read, read_segment

_WINDOW = 256 * 1024


def bounded_ends(path: Path, starts: Sequence[int], ends: Sequence[int], max_bytes: int) -> list[int]:
    """Ends for a batch of about ``max_bytes`` from ``starts``, none beyond ``ends``.

    What a short slice leaves of its share goes to the longer ones. Each share is rounded up to the end of a frame, so
    the batch may be larger by a frame per slice, and always goes forward in every slice that has something.
    """
    lengths = [max(end - start, 0) for start, end in zip(starts, ends, strict=True)]
    if sum(lengths) <= max_bytes:
        return [start + length for start, length in zip(starts, lengths, strict=True)]
    return [
        _boundary(path, index, start + share, start + length) if share < length else start + length
        for index, (start, length, share) in enumerate(
            zip(starts, lengths, fair_shares(lengths, max_bytes), strict=True)
        )
    ]


def paced_ends(
    path: Path, starts: Sequence[int], ends: Sequence[int], max_bytes: int, pace: BytePace
) -> tuple[list[int], dict[int, int]]:
    """The same as far as the pace allows, and how much of each slice that is."""
    bounded = bounded_ends(path, starts, ends, pace.most(max_bytes))
    for index, (start, end) in enumerate(zip(starts, bounded, strict=True)):
        if (most := pace.bound(index, end - start)) < end - start:
            bounded[index] = _boundary(path, index, start + most, end)
    return bounded, {i: end - start for i, (start, end) in enumerate(zip(starts, bounded, strict=True)) if end > start}


def may_end_at(path: Path, index: int, begin: int, position: int, end: int) -> bool:
    """Whether a batch that begins at a boundary of frames may end at a position, the log being durable up to ``end``.

    All but always a frame begins there, or nothing does yet. Where the log is damaged, the frames before are read.
    """
    if position == end:
        return True
    for segment in segments_between(path, index, position, end):
        begins = read_segment(segment, position, min(position + len(MAGIC), segment.limit))
        if position == segment.base or begins == MAGIC:
            return True
    *_, last = read(path, index, begin, position)
    return isinstance(last, Chunk)


def fair_shares(lengths: Sequence[int], total: int) -> list[int]:
    """Divide ``total`` so that nobody gets more than its length, nor less than another unless that is all it has.

    Whoever has something gets at least 1.
    """
    shares = [0] * len(lengths)
    by_length = sorted(range(len(lengths)), key=lengths.__getitem__)
    for done, index in enumerate(by_length):
        fair = max(total // (len(lengths) - done), 1)
        shares[index] = min(lengths[index], fair)
        total -= shares[index]
    return shares


def _boundary(path: Path, index: int, target: int, end: int) -> int:
    """The first position from ``target`` up to ``end`` that lies in no valid frame but before or behind one.

    A valid frame contains no other, so the first one found begins at a boundary, wherever the search began.
    """
    for segment in segments_between(path, index, target, end):
        if target <= segment.base:
            return segment.base
        window = _WINDOW
        while (data := read_segment(segment, target, min(target + window, segment.limit))) is not None:
            if frame := next_frame(data):
                return target + frame.start
            if len(data) < window:
                break
            window *= 4
        return segment.limit
    return end

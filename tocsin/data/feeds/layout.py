"""Where a feed log keeps what: the names of its files, and the segments of a slice.

::

    <feed>/meta.json                        the number of slices, fixed when the log is made
    <feed>/lock                             held by the one writer
    <feed>/ends                             up to where each slice is durable
    <feed>/slice-0003/00000000000008388608.log   a segment, named by the position of its first byte
    <feed>/quarantine/                      copies of damaged segments, for a person to look at
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from tocsin.data.disk import write_durably
from tocsin.errors import ConflictError, StorageError

_FORMAT = 1
_SUFFIX = ".log"


class Segment(NamedTuple):
    """One file of a slice: the positions from ``base`` up to ``limit``, where the next segment begins, are its own."""

    base: int
    limit: int
    file: Path


def slice_directory(feed: Path, index: int) -> Path:
    """Where the segments of slice ``index`` are."""
    return feed / f"slice-{index:04d}"


def segment_name(base: int) -> str:
    """The file name of the segment whose first byte has position ``base``."""
    return f"{base:020d}{_SUFFIX}"


def segment_bases(directory: Path) -> list[int]:
    """Where the segments of a slice begin, ascending; files that are no segments are passed over."""
    try:
        names = [entry.name for entry in directory.iterdir()]
    except FileNotFoundError:
        return []
    stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())


def segments_between(feed: Path, index: int, start: int, end: int) -> list[Segment]:
    """The segments that own positions of a slice from ``start`` up to ``end``, each limited to ``end``."""
    directory = slice_directory(feed, index)
    bases = segment_bases(directory)
    limits = [*bases[1:], end]
    return [
        Segment(base, min(limit, end), directory / segment_name(base))
        for base, limit in zip(bases, limits, strict=False)
        if base < end and limit > start
    ]


def settle_slices(feed: Path, slices: int) -> None:
    """Record the number of slices of a new log; refuse another number for one that exists."""
    meta = feed / "meta.json"
    if not meta.exists():
        write_durably(meta, json.dumps({"format": _FORMAT, "slices": slices}).encode())
        return
    known = _read_meta(meta)
    if known != slices:
        raise ConflictError(
            f"the feed log at {feed} has {known} slices and cannot be opened with {slices}: "
            f"declare the feed with {known} slices, or drop it and create it anew"
        )


def _read_meta(meta: Path) -> int:
    try:
        content = json.loads(meta.read_bytes())
        if content["format"] == _FORMAT:
            return int(content["slices"])
    except (ValueError, KeyError, TypeError):
        pass
    raise StorageError(
        f'{meta} is damaged or of another version: restore it as {{"format": {_FORMAT}, "slices": N}}, '
        f"where N is the number of slice directories beside it"
    )

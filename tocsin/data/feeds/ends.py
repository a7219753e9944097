"""The file that tells readers up to where each slice is durable.

It holds one 64-bit position per slice and a checksum, and is overwritten in place by a single write after the data it
speaks of is on disk. It is not itself synced at each append: after a power failure it may be old, never ahead.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from tocsin.data.disk import FULL, write_durably

NAME = "ends"

_CHECKSUM = struct.Struct("<I")
# A read that overlaps the writer's write may see half of it; the next one all but surely does not.
_ATTEMPTS = 100


class EndsFile:
    """The writer's hold on the file."""

    def __init__(self, feed: Path, ends: Sequence[int], afresh: bool = False) -> None:
        file, content = feed / NAME, _pack(ends)
        # A file of the right size is overwritten in place, so that a process can start on a full disk.
        if not file.exists() or file.stat().st_size != len(content):
            write_durably(file, content)
        elif afresh:
            # Whoever else has it open then writes to a file that nobody reads.
            try:
                write_durably(file, content)
            except OSError as error:
                if error.errno not in FULL:
                    raise
        self._descriptor = os.open(file, os.O_WRONLY)
        self.write(ends)

    def write(self, ends: Sequence[int]) -> None:
        """Let readers see all up to ``ends``; the caller has made it durable."""
        content = _pack(ends)
        if os.pwrite(self._descriptor, content, 0) != len(content):
            raise OSError("the file of durable ends was written only in part")

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def read_ends(feed: Path) -> list[int] | None:
    """The durable end of each slice, or None when the file is missing or damaged."""
    for _ in range(_ATTEMPTS):
        try:
            content = (feed / NAME).read_bytes()
        except FileNotFoundError:
            return None
        if (ends := _unpack(content)) is not None:
            return ends
    return None


def _pack(ends: Sequence[int]) -> bytes:
    positions = struct.pack(f"<{len(ends)}q", *ends)
    return positions + _CHECKSUM.pack(crc32(positions))


def _unpack(content: bytes) -> list[int] | None:
    positions, checksum = content[: -_CHECKSUM.size], content[-_CHECKSUM.size :]
    if len(positions) % 8 or not positions or checksum != _CHECKSUM.pack(crc32(positions)):
        return None
    return list(struct.unpack(f"<{len(positions) // 8}q", positions))

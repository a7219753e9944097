"""The writing end of one slice: its segment files, of which only the newest grows.

A frame is first staged, then synced, and only then accepted or undone. Between staging and accepting, the file holds
bytes that no reader may see.
"""

from __future__ import annotations

import os
from pathlib import Path

from tocsin.data.disk import FULL, sync_directory
from tocsin.data.feeds.frame import whole_length
from tocsin.data.feeds.layout import segment_bases, segment_name


class SliceWriter:
    """Appends to one slice. ``end`` is the position after the last accepted frame.

    Args:
        directory: where the segments are; it exists.
        segment_bytes: a segment at least this long is followed by a new one.
        acknowledged: a position known to have been accepted earlier. What lies beyond it and is not a whole frame is
            a torn tail and cut off. If the files end before it, data was lost from under us: the slice goes on at
            this position, so that no position is ever used twice, and readers report the hole.
        afresh: whether to go on in a new segment, as somebody may still write to the newest one.
    """

    def __init__(self, directory: Path, segment_bytes: int, acknowledged: int, afresh: bool = False) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._bases = segment_bases(directory)
        self._descriptor = -1
        self._staged = 0
        self._dirty = False
        self.end = acknowledged
        try:
            self._recover(acknowledged)
            if afresh:
                self._begin_afresh()
        except BaseException:
            self.close()
            raise

    @property
    def unsettled(self) -> bool:
        """Whether there is a staged frame, or a part of one, that was neither accepted nor taken back."""
        return self._dirty

    def stage(self, frame: bytes) -> None:
        """Write ``frame`` behind the end, in a new segment if the newest one is full."""
        if self._dirty:
            self._cut()
        if self.end - self._base >= self._segment_bytes:
            self._start_segment()
        self._dirty = True
        self._staged = len(frame)
        _write_all(self._descriptor, frame, self.end - self._base)

    def sync(self) -> None:
        """Wait until the disk holds what was staged."""
        os.fdatasync(self._descriptor)

    def accept(self) -> None:
        """Make the staged frame part of the slice."""
        self.end += self._staged
        self._dirty = False

    def undo(self) -> None:
        """Take the staged frame back; if the disk refuses even that, it is done before the next one is staged."""
        try:
            self._cut()
        except OSError:
            self._dirty = True

    def forget(self, position: int) -> list[Path]:
        """Segments wholly below ``position``, oldest first, for the caller to remove. Never the newest one."""
        keep = 0
        while keep + 1 < len(self._bases) and self._bases[keep + 1] <= position:
            keep += 1
        forgotten, self._bases = self._bases[:keep], self._bases[keep:]
        return [self._directory / segment_name(base) for base in forgotten]

    def close(self) -> None:
        """Let go of the files."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def _base(self) -> int:
        return self._bases[-1]

    def _recover(self, acknowledged: int) -> None:
        if not self._bases:
            self._start_segment()
            return
        self._descriptor = os.open(self._directory / segment_name(self._base), os.O_RDWR)
        size = os.fstat(self._descriptor).st_size
        if self._base + size < acknowledged:
            self._start_segment()
            return
        known = max(acknowledged - self._base, 0)
        self.end = self._base + known + whole_length(_read_all(self._descriptor, known, size - known))
        self._cut()
        os.fsync(self._descriptor)

    def _begin_afresh(self) -> None:
        """What somebody else still writes to the newest segment comes behind its limit, where nobody reads."""
        empty = self._base == self.end
        if empty:
            # Another file under its name is no longer the one that the other has open.
            self._bases.pop()
        try:
            (self._directory / segment_name(self.end)).unlink(missing_ok=True)
            self._start_segment()
        except OSError as error:
            # Where the disk is full nobody writes anything. The segment at hand is gone on with.
            if error.errno not in FULL or empty:
                raise

    def _start_segment(self) -> None:
        file = self._directory / segment_name(self.end)
        # Never one that is there: it would be another writer's.
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            sync_directory(self._directory)
        except BaseException:
            os.close(descriptor)
            file.unlink(missing_ok=True)
            raise
        self.close()
        self._descriptor = descriptor
        self._bases.append(self.end)

    def _cut(self) -> None:
        os.ftruncate(self._descriptor, self.end - self._base)
        self._dirty = False


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view = view[written:]
        offset += written


def _read_all(descriptor: int, offset: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.pread(descriptor, size, offset)):
        parts.append(part)
        offset += len(part)
        size -= len(part)
    return b"".join(parts)

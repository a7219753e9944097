"""The feed log as its one writer sees it: append, know the ends, release what has been read."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from pyspark.sql import DataFrame, SparkSession

from tocsin.data.disk import make_directory, sync_directory
from tocsin.data.feeds.addresses import DirectoryLog
from tocsin.data.feeds.batch import paced_ends
from tocsin.data.feeds.ends import EndsFile, read_ends
from tocsin.data.feeds.frame import encode_divided
from tocsin.data.feeds.layout import settle_slices, slice_directory
from tocsin.data.feeds.lines import read_here
from tocsin.data.feeds.pace import BytePace
from tocsin.data.feeds.source import FORMAT, FeedSource, ranges_between
from tocsin.data.feeds.writer import SliceWriter
from tocsin.data.fence import Fence
from tocsin.errors import StorageError, SupersededError, UnavailableError
from tocsin.lock import take_lock
from tocsin.schema.records import MAX_RECORD_BYTES

_SYNC_THREADS = 8
_PROBE_BYTES = 1 << 20


class FeedLog:
    """The durable, sliced log of one feed.

    One process writes at a time; within it, one thread may append while others ask and release. What can go wrong:

    - the process dies while appending: the next ``open`` cuts off what is not whole. Records of that append were
      never acknowledged and may be there or not;
    - the disk is full or fails: ``append`` takes back what it wrote and raises; it may simply be called again;
    - acknowledged data is damaged: it stays where it is, for the reader to report, and positions go on behind it.

    Args:
        path: the log's own directory, made if missing.
        slices: how many slices; fixed for the life of the log.
        segment_bytes: a segment file at least this long is followed by a new one.
        read: positions up to which the log is known to have been read. Normally below the ends; should the log's
            files have been lost, new records are placed behind these positions, where they will be seen.
        fence: by which a later data cluster stops this writer, whose files it leaves alone: what this one has accepted
            is in the log, and what it writes afterwards is not. Without one a lock keeps other writers out.
    """

    def __init__(
        self, path: Path, slices: int, segment_bytes: int, read: Sequence[int] = (), fence: Fence | None = None
    ) -> None:
        if slices < 1 or segment_bytes < 1:
            raise ValueError("a feed log needs at least one slice and segments of at least one byte")
        if read and len(read) != slices:
            raise ValueError(f"{len(read)} positions given for a feed log of {slices} slices")
        self.path = path
        self.records = 0
        self.largest_record = MAX_RECORD_BYTES
        """Records appended since the log was opened."""
        self.bytes = 0
        """Bytes appended since the log was opened, frames included."""
        self._slices = slices
        self._segment_bytes = segment_bytes
        self._read = read or [0] * slices
        self._fence = fence
        self._superseded: SupersededError | None = None
        self._lock = threading.Lock()
        self._appended = threading.Condition()
        self._held = ExitStack()
        self._writers: list[SliceWriter] = []
        # Segments that were read, and that the disk has not let go of so far.
        self._unremoved: list[Path] = []
        self._ends: tuple[int, ...] = ()
        self._pace, self._asked = BytePace(), dict[int, int]()

    def open(self) -> Self:
        """Take the lock and recover; every whole frame found is durable, and seen by readers, afterwards.

        Raises:
            ConflictError: another process writes this log, or it was made with another number of slices.
            StorageError: the disk refused.
        """
        if self._writers:
            return self
        try:
            self._recover()
        except OSError as error:
            self.close()
            raise StorageError(
                f"the feed log at {self.path} cannot be opened ({error.strerror or error}): "
                "make sure that the directory is writable and the disk has room, and start again"
            ) from error
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Let go of files and lock, after an append that is under way. A closed log may be opened again."""
        with self._lock:
            self._writers, self._ends = [], ()
            self._held.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> list[int]:
        """Make the records of each slice durable, all or nothing, and return the new ends.

        Raises:
            StorageError: the disk refused; nothing was accepted, and the same call may be made again.
            SupersededError: another data cluster has taken over; nothing was accepted, and nothing will be.
        """
        frames = {index: encode_divided(records) for index, records in batches.items() if records}
        if not all(0 <= index < self._slices for index in frames):
            raise ValueError(f"slices are numbered 0 to {self._slices - 1}, not {sorted(frames)}")
        with self._lock:
            self._require_open()
            if frames:
                self._commit(frames)
                self.records += sum(len(records) for records in batches.values())
                self.bytes += sum(len(frame) for frame in frames.values())
            ends = list(self._ends)
        self.wake()
        return ends

    def ends(self) -> list[int]:
        """Up to where each slice is durable."""
        ends = self._ends
        self._require_open()
        return list(ends)

    def wait_for_more(self, positions: Sequence[int], given_up: Callable[[], bool]) -> None:
        """Returns when the log goes beyond these positions, or nobody wants to know any more; see :meth:`wake`."""
        with self._appended:
            self._appended.wait_for(lambda: given_up() or self.backlog(positions) > 0)

    def wake(self) -> None:
        """Has those who wait for more look again."""
        with self._appended:
            self._appended.notify_all()

    def batch_ends(self, starts: Sequence[int], max_bytes: int, slices: Collection[int]) -> list[int]:
        """How far a batch of about so many bytes of some slices goes from these positions."""
        pairs = enumerate(zip(starts, self.ends(), strict=True))
        ends = [end if index in slices else start for index, (start, end) in pairs]
        ends, self._asked = paced_ends(self.path, starts, ends, max_bytes, self._pace)
        return ends

    def batch(self, spark: SparkSession, starts: Sequence[int], ends: Sequence[int]) -> DataFrame:
        """What lies between these positions: columns slice, position (after the record), line, damage."""
        return read_here(spark, self.path, ranges_between(starts, ends))

    def took(self, row_bytes: int) -> None:
        """The batch that was asked for last is stored."""
        self._pace.took(self._asked, row_bytes)

    def failed(self) -> None:
        """It could not be read, or not be stored: what it had is read by less at a time."""
        self._pace.failed(self._asked)

    def backlog(self, positions: Sequence[int]) -> int:
        """How many bytes lie between ``positions`` and the ends."""
        return sum(max(end - position, 0) for position, end in zip(positions, self.ends(), strict=True))

    def has_room(self) -> bool:
        """Whether the disk takes something again, found out by giving it something."""
        probe = self.path / "probe"
        try:
            descriptor = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.pwrite(descriptor, bytes(_PROBE_BYTES), 0)
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
                probe.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def release(self, positions: Sequence[int]) -> None:
        """Remove the segments that lie wholly below ``positions``; what was not read yet is never touched."""
        with self._lock:
            self._require_open()
            pairs = zip(self._writers, positions, strict=True)
            forgotten = (file for writer, position in pairs for file in writer.forget(position))
            unneeded, self._unremoved = [*self._unremoved, *forgotten], []
        try:
            while unneeded:
                unneeded[0].unlink(missing_ok=True)
                del unneeded[0]
        except OSError as error:
            with self._lock:
                self._unremoved += unneeded
            raise StorageError(f"{error.filename} was read but cannot be removed ({error.strerror})") from error

    def stream(self, spark: SparkSession, positions: Sequence[int], max_bytes: int) -> DataFrame:
        """The log from these positions on, in micro-batches of about so many bytes."""
        spark.dataSource.register(FeedSource)
        return (
            spark.readStream.format(FORMAT)
            .option("path", str(self.path))
            .option("positions", msgspec.json.encode(list(positions)).decode())
            .option("maxBytes", str(max_bytes))
            .option("readers", str(spark.sparkContext.defaultParallelism))
            .load()
        )

    def address(self) -> DirectoryLog:
        """Where others can read it."""
        return DirectoryLog(str(self.path))

    def newest_ends(self) -> list[int]:
        """Up to where each slice is durable; nobody else writes it."""
        return self.ends()

    def damage(self) -> str:
        """What could not be read; told until the quarantined files have been looked at and moved away."""
        files = sorted((self.path / "quarantine").glob("[!.]*"))
        if not files:
            return ""
        return (
            f"feed {self.path.name}: {len(files)} damaged part(s) of its log could not be read; what was in them is in "
            f"{files[0].parent}, the positions are among its dead letters; move the files away when you have seen them"
        )

    def remove(self) -> None:
        """Nothing is left to do: all of it is in its directory."""

    def _require_open(self) -> None:
        if not self._writers:
            raise UnavailableError(f"the feed log at {self.path} is closed: try again when its server has started")

    def _recover(self) -> None:
        make_directory(self.path)
        if self._fence is None:
            self._held.callback(os.close, take_lock(self.path / "lock", "the feed log"))
        settle_slices(self.path, self._slices)
        writers = [self._recover_slice(index, end) for index, end in enumerate(self._acknowledged_ends())]
        sync_directory(self.path)
        ends = tuple(writer.end for writer in writers)
        self._ends_file = EndsFile(self.path, ends, self._fence is not None)
        self._held.callback(self._ends_file.close)
        self._pool = self._held.enter_context(ThreadPoolExecutor(_SYNC_THREADS, "feed-sync"))
        self._ends, self._writers = ends, writers

    def _acknowledged_ends(self) -> list[int]:
        known = read_ends(self.path) or []
        if len(known) != self._slices:
            return list(self._read)
        return [max(pair) for pair in zip(known, self._read, strict=True)]

    def _recover_slice(self, index: int, acknowledged: int) -> SliceWriter:
        directory = slice_directory(self.path, index)
        directory.mkdir(exist_ok=True)
        writer = SliceWriter(directory, self._segment_bytes, acknowledged, self._fence is not None)
        self._held.callback(writer.close)
        return writer

    def _commit(self, frames: Mapping[int, bytes]) -> None:
        writers = [self._writers[index] for index in frames]
        if self._superseded is not None:
            raise self._superseded
        try:
            if any(writer.unsettled for writer in writers):
                # To stage another frame takes that one back.
                self._check_fence()
            for index, frame in frames.items():
                self._writers[index].stage(frame)
            self._sync(writers)
            # Whoever takes over after this reads what was synced.
            self._check_fence()
            ends = self._ends_with(frames)
            self._ends_file.write(ends)
        except OSError as error:
            self._take_back(writers)
            raise _refusal(self.path, error) from error
        for writer in writers:
            writer.accept()
        self._ends = ends

    def _take_back(self, writers: Sequence[SliceWriter]) -> None:
        """Nothing that another may go on from: where that cannot be told, the next append begins with it."""
        with suppress(OSError):
            self._check_fence()
            for writer in writers:
                writer.undo()

    def _check_fence(self) -> None:
        if self._fence is None:
            return
        try:
            self._fence.check()
        except SupersededError as error:
            # What is staged is another's to judge, so that nothing is ever cut off again either.
            self._superseded = error
            raise

    def _ends_with(self, frames: Mapping[int, bytes]) -> tuple[int, ...]:
        return tuple(end + len(frames.get(index, b"")) for index, end in enumerate(self._ends))

    def _sync(self, writers: Sequence[SliceWriter]) -> None:
        if len(writers) == 1:
            writers[0].sync()
            return
        # The disk merges syncs that wait at the same time; one after the other each would cost a flush of its own.
        syncs = [self._pool.submit(writer.sync) for writer in writers]
        wait(syncs)
        for sync in syncs:
            sync.result()


def _refusal(path: Path, error: OSError) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"the disk is full: nothing was accepted; free space at {path} and publish again")
    reason = error.strerror or str(error)
    return StorageError(
        f"the disk refused ({reason}): nothing was accepted; check the disk at {path} and publish again"
    )

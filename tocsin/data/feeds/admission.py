"""Publications into the feed log: checked, assigned to slices, and written in groups that share an fsync."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tocsin.data.feeds.logs import PublicationLog
from tocsin.data.feeds.shares import DecodedShares, decode_shares
from tocsin.data.processing.slicing import FunctionSlicing
from tocsin.errors import BusyError, StorageError, TocsinError, UnavailableError
from tocsin.model.messages import LISTED, Published, PublishedShares
from tocsin.schema.definitions import Dataset, Feed
from tocsin.schema.records import Batch, RecordDecoder
from tocsin.settings import FeedsSettings
from tocsin.slices.assignment import assignment, is_function

# A smaller body is decoded in a fraction of a millisecond, and a thread would cost more than it frees. With bad records
# it takes some milliseconds at most.
_LARGE = 8 * 1024

T = TypeVar("T")


@dataclass
class _Group:
    """Publications that are written together, of ``size`` bytes as they came."""

    slices: dict[int, list[bytes]] = field(default_factory=dict)
    size: int = 0
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Admission:
    """The way into one feed. Belongs to the event loop it is used from, except for :meth:`seal` and :meth:`unseal`.

    Args:
        backlog: bytes of the log that the dataset does not have yet.
    """

    def __init__(
        self,
        feed: Feed,
        dataset: Dataset,
        feed_log: PublicationLog,
        settings: FeedsSettings,
        backlog: Callable[[], int],
    ) -> None:
        self._feed, self._log, self._settings, self._backlog = feed, feed_log, settings, backlog
        most = feed_log.largest_record
        self._decoder = RecordDecoder(dataset, feed.sliced_by, bound=feed.terms.bound, max_record_bytes=most)
        self._function = FunctionSlicing(feed, dataset, settings) if is_function(feed.using) else None
        self._assign = None if self._function else assignment(feed.using, max(len(feed.slicing), 1))
        self._records = [0] * feed.slices
        self._group: _Group | None = None
        # Bytes of publications that are neither in the log nor refused yet: a slow disk must not let them pile up.
        self._in_hand = 0
        self._writing = asyncio.Lock()
        self._writers: set[asyncio.Task[None]] = set()
        self._gate = threading.Lock()
        # Closed, it lets nobody in; sealed, it does not write what those inside brought either.
        self._closed = self._sealed = False
        self._refusal = ""
        self._look_again = 0.0

    @property
    def refusal(self) -> str:
        """Why publications are not taken; the disk's reason is told until it would take one again."""
        if self._function is not None and self._function.problem:
            return self._function.problem
        if self._refusal and time.monotonic() >= self._look_again:
            self._look_again = time.monotonic() + self._settings.retry_after_seconds
            if self._log.has_room():
                self._refusal = ""
        return self._refusal

    @property
    def closed(self) -> bool:
        """Whether it lets nobody in any more."""
        return self._closed

    @property
    def slice_records(self) -> list[int]:
        """How many records each slice was given since this was made."""
        return list(self._records)

    @property
    def assignment_failures(self) -> int:
        """How many records a function of one's own had no slice for."""
        return self._function.failures if self._function is not None else 0

    async def publish(self, body: bytes, content_type: str, publisher: str | None = None) -> Published:
        """Accepts what can be accepted of a request; that is on disk when this returns.

        ``publisher`` is whose records these are; None: of somebody who may publish for others.
        """
        batch, _ = await self._take_in(body, lambda: (self._decoder.decode(body, content_type, publisher), None))
        return Published(len(batch.lines), batch.refusals, batch.unlisted)

    async def publish_shares(self, body: bytes) -> PublishedShares:
        """The same of what a broker passes on: records of several subscribers, some of whom may not publish here."""

        def decode() -> tuple[Batch, DecodedShares]:
            shares = decode_shares(self._decoder, self._feed, body)
            return shares.batch, shares

        # How many of a share's are not listed is told by the share, so all are that are found later.
        batch, shares = await self._take_in(body, decode, listed=len(body))
        return PublishedShares(len(batch.lines), batch.refusals, shares.denied, shares.unlisted)

    async def _take_in(
        self, body: bytes, decode: Callable[[], tuple[Batch, T]], listed: int = LISTED
    ) -> tuple[Batch, T]:
        if self._closed:
            raise self._closing()
        if self._function is not None:
            self._function.require()
        self._refuse_when_full()
        self._in_hand += len(body)
        try:
            if len(body) > _LARGE:
                (batch, more), slices = await asyncio.to_thread(self._decode, decode)
            else:
                (batch, more), slices = self._decode(decode)
            if self._function is not None:
                batch, slices = await _choose_slices(self._function, batch, listed)
        finally:
            self._in_hand -= len(body)
        if batch.lines:
            await self._written(batch, slices, len(body))
        return batch, more

    def seal(self) -> None:
        """Takes no more: once this returns, nothing is written to the log any more. May be called from any thread."""
        self._closed = True
        with self._gate:
            self._sealed = True

    def unseal(self) -> None:
        """Takes publications again."""
        with self._gate:
            self._closed = self._sealed = False

    async def close(self) -> None:
        """Takes no more, and lets what was taken be written."""
        self._closed = True
        while self._writers:
            await asyncio.wait(self._writers)
        self.seal()

    def release(self) -> None:
        """Lets go of what it has; nothing is taken any more."""
        if self._function is not None:
            self._function.close()

    def _closing(self) -> UnavailableError:
        return UnavailableError(f"feed {self._feed.name} is being closed; publish again in a moment")

    def _refuse_when_full(self) -> None:
        waiting = self._backlog() + self._in_hand
        if waiting > self._settings.max_backlog_bytes:
            raise BusyError(
                f"feed {self._feed.name} has {waiting:,} bytes waiting for its dataset, over its bound of "
                f"{self._settings.max_backlog_bytes:,}; publish again after the time in Retry-After",
                retry_after=self._settings.retry_after_seconds,
            )

    def _decode(self, decode: Callable[[], tuple[Batch, T]]) -> tuple[tuple[Batch, T], list[int]]:
        decoded, assign, slices = decode(), self._assign, self._feed.slices
        return decoded, [assign(value, slices) for value in decoded[0].slicing] if assign is not None else []

    async def _written(self, batch: Batch, slices: list[int], size: int) -> None:
        group = self._group
        if group is None:
            group = self._group = _Group()
            # Where everybody has gone away, nobody need hear of a refusal.
            group.done.add_done_callback(asyncio.Future.exception)
            writer = asyncio.create_task(self._write(group))
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        for index, line in zip(slices, batch.lines, strict=True):
            group.slices.setdefault(index, []).append(line)
        group.size += size
        self._in_hand += size
        # One of the group that goes away must not take the others' answer with it.
        await asyncio.shield(group.done)

    async def _write(self, group: _Group) -> None:
        """Waits for others to join and for the group before, then writes; more join while it waits."""
        await asyncio.sleep(self._settings.group_commit_ms / 1000)
        async with self._writing:
            self._group = None
            try:
                await asyncio.to_thread(self._append, group.slices)
            except StorageError as error:
                self._refuse(str(error))
                group.done.set_exception(error)
            except TocsinError as error:
                group.done.set_exception(error)
            except Exception as error:
                group.done.set_exception(self._refuse(f"feed {self._feed.name} could not be written: {error}"))
            else:
                self._refusal = ""
                group.done.set_result(None)
            finally:
                self._in_hand -= group.size

    def _refuse(self, reason: str) -> StorageError:
        self._refusal, self._look_again = reason, time.monotonic() + self._settings.retry_after_seconds
        return StorageError(reason)

    def _append(self, slices: Mapping[int, Sequence[bytes]]) -> None:
        with self._gate:
            if self._sealed:
                raise self._closing()
            self._log.append(slices)
        for index, records in slices.items():
            self._records[index] += len(records)


async def _choose_slices(function: FunctionSlicing, batch: Batch, listed: int) -> tuple[Batch, list[int]]:
    """The records that a function has slices for, with these; the others are refused."""
    chosen = await function.choose(batch.slicing)
    faults = [each if isinstance(each, str) else None for each in chosen]
    return batch.without(faults, listed), [each for each in chosen if isinstance(each, int)]

"""Channels matched with the rows of a node's batch while these are being written."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tocsin.data.channels import trouble
from tocsin.data.channels.frames import register
from tocsin.data.compiler import query
from tocsin.data.compiler.rewrite import fresh
from tocsin.data.lake import frames
from tocsin.data.lake.location import RESULTS, TOLD_NODES
from tocsin.data.nodes.budget import MatchingBudget
from tocsin.data.nodes.channels import NodeChannel
from tocsin.data.nodes.files import ChannelMatch, FileKind, NodeFile
from tocsin.data.nodes.relations import NodeRelations
from tocsin.data.nodes.results import MOST_FILES, ResultFile, ResultWriter
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.log import get_logger
from tocsin.schema.arrow import record_schema

log = get_logger(__name__)

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class _Found:
    """What a channel has found, and how long that took."""

    files: Sequence[ResultFile]
    seconds: float


@dataclass(frozen=True)
class _Attempt:
    """A channel that is being matched with a batch."""

    channel: NodeChannel
    group: str
    found: Future[_Found]


@dataclass(frozen=True)
class _Batch:
    """What was begun with a batch, when, and the view of its rows."""

    began: float
    view: str
    attempts: Sequence[_Attempt]


class NodeMatching:
    """Matches the channels that it has learnt with one batch at a time: ``begin``, then ``finish`` or ``abandon``.

    What can go wrong: a channel takes too long, finds too much, or fails (there are no results of it, and it is left
    out for a while); what it is to be matched with is not there any more (the same until it is told anew, which it is
    soon); the batch fails for another reason (that is no channel's fault). The batch is none the worse for any of it.

    Args:
        by_executors: whether results are written where Spark computes.
    """

    def __init__(self, spark: SparkSession, shared: SharedFeed, by_executors: bool) -> None:
        self._spark, self._shared, self._by_executors = spark, shared, by_executors
        self._limits, self._lake = shared.matching, shared.folder
        self._budget = MatchingBudget(self._limits.seconds, self._limits.workers)
        self._relations = NodeRelations(spark, self._lake.below(TOLD_NODES))
        self._pool = ThreadPoolExecutor(self._limits.workers, thread_name_prefix="matching")
        # What a session does for the first time takes it seconds, for which no batch is to wait.
        self._trying = ThreadPoolExecutor(1, thread_name_prefix="matching-first")
        self._lock = threading.Lock()
        self._channels: dict[str, NodeChannel] = {}
        self._tried: dict[str, str] = {}
        self._busy: set[str] = set()
        # Tags of what names files that are gone.
        self._gone: dict[str, str] = {}
        self._batch: _Batch | None = None
        self._closed = False

    @property
    def ready(self) -> list[str]:
        """The channels that it would match with a batch, were there time for all of them."""
        with self._lock:
            return [name for name, one in self._channels.items() if self._tried.get(name) == one.compiled.statement]

    def learn(self, channels: Collection[NodeChannel]) -> None:
        """There are these channels from now on, and no others; each is matched once it was tried."""
        if not self._limits.rows_bytes:
            return
        with self._lock:
            if self._closed:
                return
            gone = self._channels.keys() - {channel.name for channel in channels}
            self._channels = {channel.name: channel for channel in channels}
            self._budget.keep(self._channels)
            new = [c for c in channels if self._tried.setdefault(c.name, "") != c.compiled.statement]
            for name in gone:
                self._trying.submit(self._forget, name)
            for channel in new:
                self._trying.submit(self._try, channel)

    def close(self) -> None:
        """Lets go of everything; matches nothing any more."""
        with self._lock:
            self._closed, self._channels = True, {}
        # Spark may have ended before, and has let go of everything then.
        with suppress(Exception):
            self.abandon()
        for pool in (self._trying, self._pool):
            pool.shutdown(cancel_futures=True)
        with suppress(Exception):
            self._relations.close()

    def begin(self, size: int, rows: Callable[[], DataFrame]) -> None:
        """Begins to match channels with rows of so many bytes."""
        self.abandon()
        began = time.monotonic()
        chosen = self._choose(began) if 0 < size <= self._limits.rows_bytes else []
        if not chosen:
            return
        try:
            view = register(rows())
        except Exception as error:
            log.debug("not matched", feed=self._shared.feed.name, reason=_sentence(error))
            self._leave(*(channel.name for channel in chosen))
            return
        self._batch = _Batch(began, view, [self._attempt(channel, view) for channel in chosen])

    def finish(self) -> list[NodeFile]:
        """What was found, when there is all of it or no more time: an entry at least for each channel that counts."""
        batch, self._batch = self._batch, None
        if batch is None:
            return []
        wait([one.found for one in batch.attempts], batch.began + self._limits.seconds - time.monotonic())
        collected = [(one.channel, found) for one in batch.attempts if (found := self._collect(one)) is not None]
        self._spark.catalog.dropTempView(batch.view)
        age = time.monotonic() - batch.began
        told: list[NodeFile] = []
        for channel, found in collected:
            entries = self._offer_files(channel, found.files, age)
            if len(told) + len(entries) > MOST_FILES:
                self._writer(channel.name).discard(found.files)
                self._failed(channel, f"with it, results would be in more than {MOST_FILES} files")
            else:
                told += entries
        return told

    def abandon(self) -> None:
        """The batch at hand will not be offered."""
        batch, self._batch = self._batch, None
        if batch is not None:
            for one in batch.attempts:
                self._cancel(one)
            self._spark.catalog.dropTempView(batch.view)

    def _choose(self, now: float) -> list[NodeChannel]:
        with self._lock:
            ready = {
                name: channel
                for name, channel in self._channels.items()
                if self._tried.get(name) == channel.compiled.statement
                and name not in self._busy
                and self._gone.get(name) != channel.tag
            }
            chosen = self._budget.choose(ready, now)
            self._busy.update(chosen)
            return [ready[name] for name in chosen]

    def _leave(self, *names: str) -> None:
        with self._lock:
            self._busy.difference_update(names)

    def _attempt(self, channel: NodeChannel, view: str) -> _Attempt:
        group = f"match-{next(_NUMBERS)}"
        found = self._pool.submit(self._match, channel, group, view)
        # Also where it was cancelled before it began.
        found.add_done_callback(lambda _: self._leave(channel.name))
        return _Attempt(channel, group, found)

    def _match(self, channel: NodeChannel, group: str, rows: str) -> _Found:
        started = time.monotonic()
        self._spark.sparkContext.setJobGroup(group, channel.name)
        files = self._writer(channel.name).compute(self._build_query(channel, rows), self._by_executors)
        return _Found(files, time.monotonic() - started)

    def _build_query(self, channel: NodeChannel, rows: str) -> DataFrame:
        views = self._relations.views(channel) | {fresh(self._shared.dataset.name): rows}
        return self._spark.sql(query.bind_views(channel.compiled.statement, views))

    def _try(self, channel: NodeChannel) -> None:
        """Runs it on nothing, so that the first batch need not wait for what Spark has to make for it."""
        name, statement = channel.name, channel.compiled.statement
        with self._lock:
            if self._tried.get(name) == statement or self._channels.get(name) is not channel:
                return
            is_busy = name in self._busy
            self._busy.add(name)
        if not is_busy:
            self._run_on_nothing(channel)
            self._leave(name)
        with self._lock:
            self._tried[name] = statement

    def _run_on_nothing(self, channel: NodeChannel) -> None:
        view = ""
        try:
            view = register(frames.empty(self._spark, record_schema(self._shared.dataset.columns)))
            self._build_query(channel, view).toArrow()
        except Exception as error:
            log.debug("a channel could not be tried", channel=channel.name, reason=_sentence(error))
        finally:
            self._spark.catalog.dropTempView(view)

    def _forget(self, name: str) -> None:
        with self._lock:
            if name in self._channels or name in self._busy:
                return
            self._tried.pop(name, None)
            self._gone.pop(name, None)
        self._relations.drop(name)

    def _collect(self, one: _Attempt) -> _Found | None:
        """What a channel has found; None if there is nothing to be had."""
        if not one.found.done():
            # One that has not even begun is not to blame.
            if self._cancel(one):
                self._failed(one.channel, "it took too long")
            return None
        error = one.found.exception()
        if error is not None:
            self._broke_down(one.channel, error)
            return None
        found = one.found.result()
        with self._lock:
            self._budget.took(one.channel.name, found.seconds, time.monotonic())
        return found

    def _cancel(self, one: _Attempt) -> bool:
        """Has it found nothing; whether it had begun."""
        if one.found.cancel():
            return False
        one.found.add_done_callback(partial(self._discard, one.channel))
        context: Any = self._spark.sparkContext._jsc
        with suppress(Exception):
            context.sc().cancelJobGroupAndFutureJobs(one.group)
        return True

    def _broke_down(self, channel: NodeChannel, error: BaseException) -> None:
        if not trouble.is_of_missing_file(error):
            self._failed(channel, _sentence(error))
            return
        # The head has told something newer, which is on its way: there is nothing wrong with the channel.
        log.debug("what a channel is matched with is gone", channel=channel.name, reason=_sentence(error))
        with self._lock:
            self._gone[channel.name] = channel.tag

    def _failed(self, channel: NodeChannel, reason: str) -> None:
        log.debug("a channel was not matched", channel=channel.name, reason=reason)
        with self._lock:
            self._budget.failed(channel.name, time.monotonic())

    def _discard(self, channel: NodeChannel, found: Future[_Found]) -> None:
        if found.exception() is None:
            self._writer(channel.name).discard(found.result().files)

    def _writer(self, channel: str) -> ResultWriter:
        return ResultWriter(self._lake.below(RESULTS).below(channel))

    def _offer_files(self, channel: NodeChannel, files: Sequence[ResultFile], age: float) -> list[NodeFile]:
        """For the head; that nothing was found is told as well."""
        match = ChannelMatch(channel.name, channel.tag, age)
        if not files:
            return [NodeFile(FileKind.RESULTS, "", 0, 0, match)]
        place = f"{RESULTS}/{channel.name}"
        return [NodeFile(FileKind.RESULTS, f"{place}/{file.name}", file.size, file.rows, match) for file in files]


def _sentence(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__

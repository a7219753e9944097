"""The data cluster as its server sees it: everything behind a few asynchronous calls.

The event loop only admits publications and passes messages on. What waits for Spark, Delta or SQLite runs in threads,
so that the server answers while they are busy.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from tocsin.data import session
from tocsin.data.applying import Applier
from tocsin.data.attachment import Attachment
from tocsin.data.catalog import Catalog
from tocsin.data.channels.execution import Execution
from tocsin.data.control.core import Position
from tocsin.data.disk import make_directory
from tocsin.data.listing import listed, total
from tocsin.data.live_channels import LiveChannel
from tocsin.data.rates import Rates
from tocsin.data.store import Store
from tocsin.data.upkeep import Upkeep
from tocsin.errors import InvalidError, NotFoundError, SparkEndedError, StorageError
from tocsin.lock import take_lock
from tocsin.log import get_logger
from tocsin.model import names
from tocsin.model.control import Changed, Dropped, Executed, Failing, Notice
from tocsin.model.histories import DROPPED, Cursor, common_execution, knows
from tocsin.model.messages import (
    ChannelHealth,
    Health,
    Listed,
    Loaded,
    Published,
    PublishedShares,
    Pulled,
    StatementOutcome,
)
from tocsin.model.terms import Asker
from tocsin.model.weight import weight
from tocsin.private import make_private_directory
from tocsin.schema.definitions import Channel
from tocsin.settings import Settings

log = get_logger(__name__)

T = TypeVar("T")


class Cluster:
    """A data cluster in this process. Publications are accepted as soon as :meth:`start` returns; Spark comes after.

    Args:
        spark: a session to run on, which is then left running in the end; one of its own unless given.
    """

    def __init__(self, settings: Settings, spark: SparkSession | None = None) -> None:
        self._settings = settings
        self._started = time.monotonic()
        self._lock = _locked(settings.data.directory)
        self.store = Store(settings.data.directory)
        self._given_spark = spark
        self._spark: Future[SparkSession] = Future()
        # Changes come one at a time anyway; waiting for each other elsewhere, they would keep all else waiting.
        self._changes = ThreadPoolExecutor(1, thread_name_prefix="changes")
        self._threads = ThreadPoolExecutor(16, thread_name_prefix="cluster")
        self._rates = Rates(settings.rates.window_seconds)
        self._listeners: dict[str, list[asyncio.Queue[Notice]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._problem = ""
        # Sentences for operators, by channel: what brokers knew, and these data do not have.
        self._setbacks: dict[str, str] = {}
        self._stopped = False
        self._spark_ended = asyncio.Event()

    async def start(self) -> None:
        """Opens what is stored and begins to start Spark; if that fails, lets go of everything."""
        self._loop = asyncio.get_running_loop()
        try:
            self._catalog = await self._in_thread(self._open)
        except BaseException:
            self._release()
            raise
        self._applier = Applier(self._catalog, self._settings.feeds.slices)
        self._upkeep = Upkeep(self._catalog, self._settings)
        self._beginning = asyncio.create_task(self._begin())

    async def ready(self) -> None:
        """Waits until Spark is there and channels run."""
        await asyncio.shield(self._beginning)

    async def wait_for_breakdown(self) -> None:
        """Waits until Spark ends without being asked to, and then raises SparkEndedError."""
        await self._spark_ended.wait()
        raise SparkEndedError(
            "Spark's process has ended, perhaps for want of memory; start the data cluster again, and it goes on where "
            "it was"
        )

    async def stop(self) -> None:
        """Ends what is at hand and lets go of everything; done again, it does nothing."""
        if self._stopped:
            return
        self._stopped = True
        await asyncio.gather(self._beginning, return_exceptions=True)
        await self._in_thread(self._changes.shutdown)
        for pipeline in self._catalog.pipelines.values():
            await pipeline.admission.close()
        await self._in_thread(self._close)
        self._threads.shutdown()

    async def apply(
        self, text: str, directory: Path | None, told: Callable[[StatementOutcome], None] = lambda _: None
    ) -> list[StatementOutcome]:
        return await self._as_change(self._applier.apply, text, directory, told)

    async def check(self, text: str) -> list[StatementOutcome]:
        return await self._as_change(self._applier.check, text)

    async def load(self, dataset: str, path: Path) -> Loaded:
        def load() -> Loaded:
            with self._catalog.changing:
                rows = self._catalog.load(dataset, path)
                return Loaded(self._catalog.rows(dataset), unchanged=True) if rows is None else Loaded(rows)

        return await self._as_change(load)

    async def publish(self, feed: str, body: bytes, content_type: str, publisher: str | None = None) -> Published:
        return await self._catalog.pipeline(feed).admission.publish(body, content_type, publisher)

    async def publish_shares(self, feed: str, body: bytes) -> PublishedShares:
        return await self._catalog.pipeline(feed).admission.publish_shares(body)

    async def register_broker(self, name: str, url: str) -> None:
        await self._in_thread(self.store.brokers.register, name, url)

    async def attach(
        self, broker: str, channel: str, parameters: list[dict[str, Any]], asker: Asker | None = None
    ) -> Attachment:
        def attach() -> Attachment:
            attachment = self._rated(self._catalog.live.attach(channel, broker, parameters, asker))
            aside = self._catalog.live.set_aside(attachment.channel.name)
            attached = set(attachment.bes) if aside else set()
            self._tell_failing(attachment.channel.name, {be: why for be, why, _ in aside if be in attached})
            return attachment

        return await self._in_thread(attach)

    def compare(self, broker: str, channel: str, known: Cursor) -> None:
        position = self.position(channel)
        history = position.history if position else []
        common = common_execution(history, known.incarnation)
        if not DROPPED < common < known.execution:
            return
        here = f"has only those up to {common}" if knows(history, known.incarnation) else "has never counted so"
        setback = (
            f"channel {channel}: broker {broker} knew execution {known.execution}, and this directory {here}: it is an "
            "older copy of the data, or another directory"
        )
        if channel not in self._setbacks:
            log.warning("the data are not those of before", channel=channel, broker=broker, reason=setback)
        self._setbacks[channel] = setback

    def _rated(self, attachment: Attachment) -> Attachment:
        """With what is known of the rates; those of new subscriptions are measured from now on."""
        now, channel, bes = time.time(), attachment.channel.name, attachment.bes
        self._rates.begin(now, channel, bes)
        forecast = self._rates.forecast(now, channel, np.array(bes, np.int64))
        return replace(attachment, rates=forecast.rates, seconds=forecast.seconds)

    async def subscribe(
        self, broker: str, channel: str, parameters: list[dict[str, Any]], asker: Asker | None = None
    ) -> list[int]:
        return (await self.attach(broker, channel, parameters, asker)).bes

    async def unsubscribe(self, broker: str, bes: list[int]) -> int:
        def detach() -> int:
            held = np.intersect1d(self._catalog.live.subscriptions.of(broker), np.array(bes, np.int64)).size
            gone = self._catalog.live.subscriptions.detach(broker, bes)
            self._rates.forget(gone)
            return int(held)

        return await self._in_thread(detach)

    def position(self, channel: str) -> Position | None:
        return self._catalog.live.position(channel)

    async def pull(
        self,
        channel: str,
        first: int,
        last: int,
        bes: list[int] | None = None,
        most: int | None = None,
        broker: str | None = None,
    ) -> AsyncGenerator[Pulled, None]:
        if first > last:
            raise InvalidError(f"executions {first} to {last} are none: first must not be after last")
        results = self._catalog.live.find(channel).results

        def begin() -> Iterator[Pulled]:
            wanted = self._catalog.live.subscriptions.of(broker) if bes is None and broker is not None else bes
            return results.pull(first, last, wanted, most)

        parts = await self._in_thread(begin)
        while (part := await self._in_thread(next, parts, None)) is not None:
            yield part

    async def rates(self, bes: list[int]) -> list[float]:
        found: list[float] = self._rates.rate(time.time(), np.array(bes, np.int64)).tolist()
        return found

    async def show(self, what: str, limit: int) -> Listed:
        def show() -> Listed:
            return Listed(listed(self._catalog, what, limit)[:limit], total(self._catalog, what))

        return await self._in_thread(show)

    async def health(self) -> Health:
        feeds = [pipeline.health() for pipeline in list(self._catalog.pipelines.values())]
        channels = [self._channel_health(live) for live in self._catalog.live]
        problems = [self._problem] if self._problem else []
        problems += [feed.error for feed in feeds if feed.error]
        problems += [damage for table in self._catalog.all_tables() if (damage := table.damage)]
        problems += [f"channel {c.name}: {c.error}" for c in channels if c.error]
        ready = self._beginning.done() and not self._problem
        status = "degraded" if problems else "ok" if ready else "starting"
        return Health(
            status=status,  # type: ignore[arg-type]
            problems=problems,
            uptime_seconds=round(time.monotonic() - self._started, 3),
            spark=ready,
            feeds=feeds,
            channels=channels,
            details={"setbacks": setbacks} if (setbacks := list(self._setbacks.values())) else {},
        )

    @asynccontextmanager
    async def listen(self, broker: str) -> AsyncIterator[asyncio.Queue[Notice]]:
        """While entered, collects what the broker is to be told."""
        known = [b.name for b in await self._in_thread(self.store.brokers.all)]
        if broker not in known:
            raise NotFoundError(
                f"there is no broker {broker}{names.suggestion(broker, known)}; register it with POST /brokers first"
            )
        notices: asyncio.Queue[Notice] = asyncio.Queue()
        self._listeners.setdefault(broker, []).append(notices)
        try:
            yield notices
        finally:
            self._listeners[broker].remove(notices)

    def _open(self) -> Catalog:
        told = (self._executed, self._dropped, self._changed, self._failing)
        catalog = Catalog(self._settings, self.store, self._spark, *told)
        for live in catalog.live:
            self._rates.resume(live.definition.name, live.results.table.changed_at)
        return catalog

    async def _begin(self) -> None:
        try:
            await self._in_thread(self._begin_with_spark)
        except Exception as error:
            self._problem = str(error).splitlines()[0]
            log.exception("the data cluster cannot begin")

    def _begin_with_spark(self) -> None:
        try:
            self._spark.set_result(self._given_spark or session.start(self._settings.spark, self._catalog.scratch))
        except Exception as error:
            self._spark.set_exception(error)
            raise
        if self._given_spark is None:
            threading.Thread(target=self._watch_spark, name="spark-watch", daemon=True).start()
        self._catalog.start()
        self._upkeep.start()
        log.info("ready", datasets=len(self._catalog.datasets), channels=len(self._catalog.channels))

    def _watch_spark(self) -> None:
        status = session.wait_for_end(self._spark.result())
        if not self._stopped and self._loop is not None:
            log.error("Spark's process has ended", status=status)
            self._loop.call_soon_threadsafe(self._spark_ended.set)

    def _close(self) -> None:
        self._upkeep.stop()
        self._catalog.stop()
        if self._given_spark is None and self._spark.done() and self._spark.exception() is None:
            session.stop(self._spark.result())
        self._release()

    def _release(self) -> None:
        self.store.close()
        os.close(self._lock)

    def _channel_health(self, live: LiveChannel) -> ChannelHealth:
        name = live.definition.name
        status = self._catalog.live.status(name)
        return ChannelHealth(name, status.state, live.results.execution, status.error)

    def _executed(self, execution: Execution) -> None:
        """Counts an execution and tells the brokers; called from its thread."""
        now = time.time()
        self._rates.add(now, execution.channel, execution.bes, weight(execution.bytes))
        self._tell_failing(execution.channel, execution.failing)
        if not len(execution.bes):
            return
        holders = self._catalog.live.subscriptions.holders(execution.bes)
        log.debug("executed", channel=execution.channel, execution=execution.number, found=len(execution.bes))
        if self._loop is not None:
            notices = {broker: self._notice(now, execution, bes) for broker, bes in holders.items()}
            self._loop.call_soon_threadsafe(self._tell, notices)

    def _notice(self, now: float, execution: Execution, bes: npt.NDArray[np.int64]) -> Executed:
        """An execution, as a broker is told of it that holds these."""
        present = self._catalog.live[execution.channel].position.incarnation
        forecast = self._rates.forecast(now, execution.channel, bes)
        return Executed(execution.channel, execution.number, bes.tolist(), present, forecast.rates, forecast.seconds)

    def _dropped(self, channel: str, incarnation: str) -> None:
        """Forgets a channel's rates and tells all brokers; called from the thread of changes."""
        self._rates.drop(channel)
        self._setbacks.pop(channel, None)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell_all, Dropped(channel, incarnation))

    def _changed(self, channel: Channel) -> None:
        """Tells all brokers by which terms subscribers are judged now; called from the thread of changes."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell_all, Changed(channel.name, channel.terms))

    def _failing(self, channel: str, reason: str) -> None:
        """Tells everybody who subscribes to a channel why nothing comes; called from the thread of an execution."""
        self._tell_failing(
            channel, dict.fromkeys(self._catalog.live.subscriptions.segments(channel).ids().tolist(), reason)
        )

    def _tell_failing(self, channel: str, failing: Mapping[int, str]) -> None:
        """Tells whose subscriptions are not served, or not with everything, and why; from any thread."""
        for message in sorted(set(failing.values())):
            holders = self._catalog.live.subscriptions.holders([be for be, why in failing.items() if why == message])
            if self._loop is not None and holders:
                notices = {broker: Failing(channel, bes.tolist(), message) for broker, bes in holders.items()}
                self._loop.call_soon_threadsafe(self._tell, notices)

    def _tell(self, told: Mapping[str, Notice]) -> None:
        """Tells each of these brokers what is for it."""
        for broker, notice in told.items():
            for notices in self._listeners.get(broker, []):
                notices.put_nowait(notice)

    def _tell_all(self, notice: Notice) -> None:
        for listeners in self._listeners.values():
            for notices in listeners:
                notices.put_nowait(notice)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def _as_change(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._changes, function, *arguments)


def _locked(directory: Path) -> int:
    """The lock of a data directory, before anything in it is touched: two processes would ruin each other's files."""
    try:
        make_private_directory(directory)
        make_directory(directory.absolute())
        return take_lock(directory / "lock", "the data directory")
    except OSError as error:
        raise StorageError(
            f"the data directory {directory} cannot be used ({error.strerror}); make it writable, or choose another "
            "with --set data.directory=PATH"
        ) from None

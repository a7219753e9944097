"""The data cluster as its server sees it: everything behind a few asynchronous calls.

The event loop only admits publications and passes messages on. What waits for Spark, Delta or SQLite runs in threads,
so that the server answers while they are busy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pyspark.sql import SparkSession

from tocsin.data import session
from tocsin.data.applying import Applier
from tocsin.data.attachment import Attachment
from tocsin.data.catalog import Catalog
from tocsin.data.condition import Condition
from tocsin.data.control.core import Position
from tocsin.data.engine import SparkEngine
from tocsin.data.feeds.logs import EMBEDDED
from tocsin.data.listing import list_things, total
from tocsin.data.notices import BrokerNotices
from tocsin.data.rates import Rates
from tocsin.data.sharing import UNSHARED
from tocsin.data.store import SeenHead
from tocsin.data.tenure import Tenure
from tocsin.data.upkeep import Upkeep
from tocsin.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    SupersededError,
    TocsinError,
)
from tocsin.log import get_logger
from tocsin.model import names
from tocsin.model.control import Notice
from tocsin.model.histories import Cursor
from tocsin.model.messages import (
    Health,
    Listed,
    Loaded,
    Published,
    PublishedShares,
    Pulled,
    StatementOutcome,
)
from tocsin.model.slices import SlicesStatus
from tocsin.model.terms import Asker
from tocsin.settings import Settings

if TYPE_CHECKING:
    from tocsin.data.sharing.heads import Heads

log = get_logger(__name__)

T = TypeVar("T")


class Cluster:
    """A data cluster in this process. Publications are accepted as soon as :meth:`start` returns; Spark comes after.

    Args:
        spark: a session to run on; one of its own unless given.
        keep_spark: whether the session that is given is left running in the end.
        silent: a data cluster that this one takes over from, though it has not ended in order.
    """

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession | None = None,
        *,
        keep_spark: bool = True,
        silent: SeenHead | None = None,
    ) -> None:
        self._settings = settings
        self._tenure = Tenure(settings.data, self._superseded, silent)
        self.store = self._tenure.store
        self._engine = SparkEngine(spark, keep_spark, self._break_down)
        # Changes come one at a time anyway; waiting for each other elsewhere, they would keep all else waiting.
        self._changes = ThreadPoolExecutor(1, thread_name_prefix="changes")
        self._threads = ThreadPoolExecutor(16, thread_name_prefix="cluster")
        self._rates = Rates(settings.rates.window_seconds)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._condition = Condition()
        self.heads: Heads | None = None
        """Of the feeds whose slices nodes share, if the settings say so."""
        self._stopped = False
        self._broken: asyncio.Future[None] | None = None

    @property
    def term(self) -> int:
        """Higher than that of any data cluster before on the same state; 0 before :meth:`start`."""
        return self.store.term

    async def start(self) -> None:
        """Opens what is stored and begins to start Spark; if that fails, lets go of everything."""
        self._loop = asyncio.get_running_loop()
        self._broken = self._loop.create_future()
        self._notices = BrokerNotices(self._loop, self._rates, lambda: self._catalog.live)
        try:
            self._catalog = await self._in_thread(self._open)
        except BaseException:
            self._tenure.end()
            raise
        self._applier = Applier(self._catalog, self._settings.feeds)
        self._upkeep = Upkeep(self._catalog, self._settings)
        self._beginning = asyncio.create_task(self._begin())

    async def ready(self) -> None:
        """Waits until Spark is there and channels run."""
        await asyncio.shield(self._beginning)

    async def wait_for_breakdown(self) -> None:
        """Waits until nothing can go on here, and then raises why.

        SparkEndedError if Spark has ended without being asked to, SupersededError if another has taken over.
        """
        assert self._broken is not None
        await asyncio.shield(self._broken)

    async def stop(self) -> None:
        """Ends what is at hand and lets go of everything; done again, it does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self._engine.expect_end()
        self._catalog.lake.close()
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
        return await self._catalog.live_feeds.find(feed).admission.publish(body, content_type, publisher)

    async def publish_shares(self, feed: str, body: bytes) -> PublishedShares:
        return await self._catalog.live_feeds.find(feed).admission.publish_shares(body)

    async def register_broker(self, name: str, url: str) -> None:
        await self._in_thread(self.store.brokers.register, name, url)

    async def attach(
        self, broker: str, channel: str, parameters: list[dict[str, Any]], asker: Asker | None = None
    ) -> Attachment:
        def attach() -> Attachment:
            attachment = self._with_rates(self._catalog.live.attach(channel, broker, parameters, asker))
            aside = self._catalog.live.set_aside(attachment.channel.name)
            attached = set(attachment.bes) if aside else set()
            self._notices.tell_failing(attachment.channel.name, {be: why for be, why, _ in aside if be in attached})
            return attachment

        return await self._in_thread(attach)

    def _with_rates(self, attachment: Attachment) -> Attachment:
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
            return Listed(list_things(self._catalog, what, limit)[:limit], total(self._catalog, what))

        return await self._in_thread(show)

    async def slices(self) -> SlicesStatus:
        feeds = [pipeline.slices() for pipeline in list(self._catalog.pipelines.values())]
        if self.heads is None:
            return SlicesStatus(False, [], feeds)
        return SlicesStatus(True, self.heads.drained, feeds, self.heads.needed)

    async def drain_node(self, node: str, on: bool) -> None:
        if self.heads is None:
            raise ConflictError(UNSHARED)
        self.heads.drain(node, on)

    def compare(self, broker: str, channel: str, known: Cursor) -> None:
        self._condition.compare(broker, channel, known, self.position(channel))

    async def health(self) -> Health:
        needed = self.heads.needed if self.heads else None
        return self._condition.report(self._catalog, begun=self._beginning.done(), needed=needed)

    @asynccontextmanager
    async def listen(self, broker: str) -> AsyncIterator[asyncio.Queue[Notice]]:
        """While entered, collects what the broker is to be told."""
        known = [b.name for b in await self._in_thread(self.store.brokers.all)]
        if broker not in known:
            raise NotFoundError(
                f"there is no broker {broker}{names.suggestion(broker, known)}; register it with POST /brokers first"
            )
        with self._notices.listen(broker) as notices:
            yield notices

    def _start_spark(self) -> SparkSession:
        kafka = self._settings.feeds.log != EMBEDDED
        return session.start(self._settings.spark, self._catalog.scratch, kafka, self._catalog.lake.spark)

    def _open(self) -> Catalog:
        fence = self._tenure.begin()
        if shares_slices(self._settings):
            self.heads = self._make_heads()
        notices = self._notices
        told = (notices.executed, self._dropped, notices.changed, notices.failing)
        catalog = Catalog(self._settings, self.store, self._engine.promise, *told, fence=fence, heads=self.heads)
        for live in catalog.live:
            self._rates.resume(live.definition.name, live.results.table.changed_at)
        return catalog

    def _dropped(self, channel: str, incarnation: str) -> None:
        self._condition.forget(channel)
        self._notices.dropped(channel, incarnation)

    def _superseded(self, error: SupersededError) -> None:
        """Another has taken over; called from the thread that noticed it."""
        self._condition.problem = str(error)
        log.error(str(error))
        self._break_down(error)

    def _break_down(self, error: TocsinError) -> None:
        def tell() -> None:
            if self._broken is not None and not self._broken.done():
                self._broken.set_exception(error)
                # Whoever does not wait for it need not be told that nobody did.
                self._broken.exception()

        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(tell)

    def _make_heads(self) -> Heads:
        assert self._loop is not None, "it was started"
        from tocsin.data.nodes.channels import MatchingLimits
        from tocsin.data.sharing.heads import Heads

        nodes, channels = self._settings.nodes, self._settings.channels
        matching = MatchingLimits(channels.arriving_bytes, nodes.matching_seconds, channels.workers)
        batch_seconds = self._settings.feeds.append_commit_ms / 1000
        return Heads(self._loop, nodes, self.term, batch_seconds, matching=matching)

    async def _begin(self) -> None:
        try:
            await self._in_thread(self._begin_with_spark)
        except TocsinError as error:
            self._condition.problem = str(error).splitlines()[0]
            log.error("the data cluster cannot begin", reason=str(error))  # noqa: TRY400  (its sentence says all)
        except Exception as error:
            self._condition.problem = str(error).splitlines()[0]
            log.exception("the data cluster cannot begin")

    def _begin_with_spark(self) -> None:
        self._engine.start(self._start_spark)
        self._catalog.start()
        self._upkeep.start()
        log.info("ready", datasets=len(self._catalog.datasets), channels=len(self._catalog.channels))

    def _close(self) -> None:
        self._upkeep.stop()
        self._catalog.stop()
        self._engine.stop()
        self._tenure.end(in_order=True)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def _as_change(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._changes, function, *arguments)


def shares_slices(settings: Settings) -> bool:
    """Whether nodes process slices of feeds; unless it is said, where executors can do what would be done here."""
    if settings.nodes.share == "auto":
        return not session.is_local_master(settings.spark.master)
    return settings.nodes.share

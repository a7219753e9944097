"""A node's process with all its parts: the feeds that are shared, and a driver for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from tocsin.data.nodes.channels import NodeChannel
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.data.sharing.gauge import ProcessGauge, Usage
from tocsin.data.sharing.node import NodeDriver, SliceWork
from tocsin.data.sharing.wire import (
    REASON,
    FeedBegun,
    FeedChannel,
    FeedChannelEnded,
    FeedDeclined,
    FeedEnded,
    ForNode,
    NodeWelcome,
    ToHead,
    ToNode,
)
from tocsin.errors import InvalidError
from tocsin.log import get_logger
from tocsin.settings import WorkerSettings
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import FromNode
from tocsin.slices.node import NodeCore
from tocsin.worker.link import WorkerLink

log = get_logger(__name__)

_AGAIN_SECONDS: Final = 5.0
_FUNCTION_SECONDS: Final = 30.0

MakeWork = Callable[[SharedFeed], Awaitable[tuple[SliceWork, bool]]]
"""Makes what processes slices of a feed; and says whether that is done by processes of this one's."""


@dataclass
class FeedAtWork:
    """A feed of which the node has slices, or may get some. ``connection`` is the one on which it has said hello."""

    begun: FeedBegun
    driver: NodeDriver
    work: SliceWork
    connection: int = 0

    async def stop(self) -> None:
        """Lets go of everything, after the batch at hand."""
        await self.driver.stop()
        await asyncio.to_thread(self.work.close)


class UnableFeed(NamedTuple):
    """Why a feed cannot be processed here, and on which connection and of which incarnation the head was told."""

    reason: str
    connection: int
    incarnation: str


class Worker:
    """All feeds of a node. On the event loop.

    What can go wrong: the head is lost (nothing is begun any more; when it is back, what still holds is gone on with);
    a feed's log or dataset cannot be seen from here (it is tried again every few seconds, and others take its slices
    meanwhile), or its function may not or cannot run here (the head is told, and gives this node none of its slices);
    the head is another one, or the feed was made anew (all that was learnt of its dataset is forgotten).
    """

    def __init__(self, settings: WorkerSettings, make_work: MakeWork, ca: str = "") -> None:
        self._settings, self._make_work = settings, make_work
        self.link = WorkerLink(settings, ca, self)
        self._unable: dict[str, UnableFeed] = {}
        self._again: asyncio.TimerHandle | None = None
        self.done = asyncio.Event()
        """Set when it has nothing more to do."""
        self._gauge = ProcessGauge()
        # What the head has said on the present connection, and the number of that.
        self._connection = 0
        self._listed: set[str] = set()
        self._known: dict[str, FeedBegun] = {}
        self._feeds: dict[str, FeedAtWork] = {}
        self._channels: dict[str, dict[str, NodeChannel]] = {}
        self._changed = asyncio.Event()
        self._leaving = False

    @property
    def slices(self) -> dict[str, int]:
        """How many slices of each feed it has."""
        return {name: len(feed.driver.core.slices) for name, feed in self._feeds.items()}

    @property
    def is_starting(self) -> bool:
        """Whether the head was never reached, or Spark is not there yet for its feeds."""
        return not self._connection or not self._known.keys() <= self._feeds.keys()

    @property
    def problems(self) -> list[str]:
        """What keeps it from its work, in sentences."""
        found = [f"feed {name}: {feed.driver.problem}" for name, feed in self._feeds.items() if feed.driver.problem]
        return [*(f"feed {name}: {reason}" for name, (reason, *_) in self._unable.items()), *found]

    async def run(self) -> None:
        """Works until it is cancelled."""
        keeping = asyncio.create_task(self.link.keep())
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self._settle()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            for feed in self._feeds.values():
                await feed.stop()

    def leave(self) -> None:
        """Wants to end, once others have its slices. Who cannot tell the head has nothing to wait for."""
        self._leaving = True
        for feed in self._feeds.values():
            feed.driver.leave()
        if not self.link.is_up:
            self.done.set()
        self._look_done()

    def connected(self, welcome: NodeWelcome) -> None:
        """The head has said which feeds there are."""
        self._connection += 1
        self._listed, self._known = set(welcome.feeds), {}
        self._changed.set()

    def received(self, message: ForNode) -> None:
        """The head says something."""
        match message:
            case ToNode(name, incarnation, said):
                feed = self._feeds.get(name)
                if feed is not None and feed.begun.incarnation == incarnation:
                    feed.driver.heard(said)
            case FeedChannel(name, incarnation, channel):
                self._learn(name, incarnation, {**self._channels.get(name, {}), channel.name: channel})
            case FeedChannelEnded(name, incarnation, ended):
                known = self._channels.get(name, {})
                self._learn(name, incarnation, {other: one for other, one in known.items() if other != ended})
            case FeedBegun(shared, incarnation):
                name = shared.feed.name
                self._listed.add(name)
                self._learn(name, incarnation, {})
                if not self._settings.feeds or name in self._settings.feeds:
                    self._known[name] = message
                self._changed.set()
            case FeedEnded(name):
                self._listed.discard(name)
                self._known.pop(name, None)
                self._channels.pop(name, None)
                self._changed.set()

    def _learn(self, feed: str, incarnation: str, channels: dict[str, NodeChannel]) -> None:
        """The channels that are matched with a feed are these; should it not be there yet, it is told when it is."""
        self._channels[feed] = channels
        known = self._feeds.get(feed)
        if known is not None and known.begun.incarnation == incarnation:
            known.driver.learn(channels.values())

    def lost(self) -> None:
        """There is no connection any more."""
        self._known = {}
        for feed in self._feeds.values():
            feed.driver.lost()
        if self._leaving:
            self.done.set()

    async def _settle(self) -> None:
        """Has a driver for each feed that is shared, and for no other."""
        held: dict[str, list[int]] = {}
        for name, feed in list(self._feeds.items()):
            begun = self._known.get(name, feed.begun)
            if name not in self._listed or begun.incarnation != feed.begun.incarnation:
                held[name] = list(feed.driver.core.slices)
                del self._feeds[name]
                await feed.stop()
        self._unable = {name: told for name, told in self._unable.items() if name in self._listed}
        # Those that have failed are last: what they do here, such as a function's import, may take its time.
        for name, begun in sorted(self._known.items(), key=lambda item: item[0] in self._unable):
            try:
                await self._open(begun, held.get(name, []))
            except Exception as error:
                self._fail(begun, error)
        self._look_done()

    async def _open(self, begun: FeedBegun, held: list[int]) -> None:
        name = begun.shared.feed.name
        if name not in self._feeds:
            if self._leaving:
                return
            self._feeds[name] = await self._begin(begun, held)
            self._feeds[name].driver.learn(self._channels.get(name, {}).values())
            self._unable.pop(name, None)
        feed = self._feeds[name]
        # The connection may have been lost, and the feed made anew, while the work was prepared.
        if self._known.get(name) == feed.begun and feed.connection != self._connection:
            feed.connection = self._connection
            feed.driver.opened()

    async def _begin(self, begun: FeedBegun, held: list[int]) -> FeedAtWork:
        shared, name = begun.shared, begun.shared.feed.name
        work, measured = await self._make_work(shared)
        if not held:
            await self._prepare(work, name)
        limits = SliceLimits(batch_seconds=begun.batch_seconds)
        capacity = self._settings.capacity or self._gauge.processors
        kept = [slice_ for slice_ in held if slice_ < shared.feed.slices]
        core = NodeCore(self._settings.name, capacity, limits, kept)

        def say(message: FromNode) -> None:
            self.link.send(ToHead(name, begun.incarnation, message))

        def stopped() -> None:
            log.info("the node has no slices of a feed any more", feed=name)
            self._look_done()

        driver = NodeDriver(core, work, say, stopped, self._gauge.look if measured else _measure_nothing)
        return FeedAtWork(begun, driver, work)

    @staticmethod
    async def _prepare(work: SliceWork, feed: str) -> None:
        """Has all done that takes long at the first time, before the head hears of the node: it may take longer than
        a session waits, and others go on with their slices meanwhile."""
        try:
            await asyncio.to_thread(work.prepare, [])
        except Exception as error:
            # Who is given slices and still cannot says so then.
            log.debug("a feed could not be prepared", feed=feed, reason=str(error))

    def _fail(self, begun: FeedBegun, error: Exception) -> None:
        """Tells the head once on each connection, and tries again later."""
        name = begun.shared.feed.name
        reason = (next(iter(str(error).splitlines()), "") or type(error).__name__)[:REASON]
        unable = UnableFeed(reason, self._connection, begun.incarnation)
        if unable != self._unable.get(name):
            log.error("a feed cannot be processed here", feed=name, reason=reason)
            self.link.send(FeedDeclined(name, begun.incarnation, reason))
        self._unable[name] = unable
        # A function has to be allowed or installed first, by a person.
        self._try_again(_FUNCTION_SECONDS if isinstance(error, InvalidError) else _AGAIN_SECONDS)

    def _try_again(self, seconds: float) -> None:
        """Looks at all feeds again then, or before: one alarm for all of them, however many fail."""
        loop = asyncio.get_running_loop()
        if self._again is not None:
            if loop.time() < self._again.when() <= loop.time() + seconds:
                return
            self._again.cancel()
        self._again = loop.call_later(seconds, self._changed.set)

    def _look_done(self) -> None:
        """It has nothing more to do when all its drivers have stopped; when it wants to leave, also without any."""
        cores = [feed.driver.core for feed in self._feeds.values()]
        if all(core.stopped for core in cores) and (cores or self._leaving):
            self.done.set()


def _measure_nothing() -> Usage | None:
    """Where Spark runs elsewhere, how busy this process is says nothing."""
    return None

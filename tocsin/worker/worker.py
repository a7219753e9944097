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
    meanwhile), or only after a long time (the other feeds go on), or its function may not or cannot run here (the head
    is told, and gives this node none of its slices); the head is another one, or the feed was made anew (all that was
    learnt of its dataset is forgotten).
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
        # What lets go of a feed, or begins with it: of each feed one after the other, and none waits for another's.
        self._changing: dict[str, asyncio.Task[None]] = {}
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
                self._settle()
        finally:
            ending = [keeping, *self._changing.values()]
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
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

    def _settle(self) -> None:
        """Has a driver for each feed that is shared, and for no other. Those that are at work wait for nobody."""
        self._unable = {name: told for name, told in self._unable.items() if name in self._listed}
        for feed in self._feeds.values():
            self._greet(feed)
        gone = [name for name, feed in self._feeds.items() if not self._is_wanted(feed.begun)]
        for name in (*gone, *(name for name in self._known if name not in self._feeds)):
            if name not in self._changing:
                self._changing[name] = asyncio.create_task(self._change(name))
        self._look_done()

    def _is_wanted(self, begun: FeedBegun) -> bool:
        """Whether a feed is still shared, and was not made anew, as far as the head has said."""
        name = begun.shared.feed.name
        return name in self._listed and self._known.get(name, begun).incarnation == begun.incarnation

    def _greet(self, feed: FeedAtWork) -> None:
        """Says hello, once on each connection, when the head has told of the feed on it."""
        told = feed.begun.shared.feed.name in self._known and self._is_wanted(feed.begun)
        if told and feed.connection != self._connection:
            feed.connection = self._connection
            feed.driver.opened()

    async def _change(self, name: str) -> None:
        """Lets go of what a feed was, and begins with what it is; either may take long, and the feed change again."""
        begun = None
        try:
            held = await self._let_go(name)
            begun = self._known.get(name)
            if begun is not None and not self._leaving:
                await self._begin(begun, held)
        except Exception as error:
            if begun is not None and self._is_wanted(begun):
                self._fail(begun, error)
            else:
                log.warning("a feed that is no more could not be let go", feed=name, reason=str(error))
        finally:
            del self._changing[name]
        if begun is not None and not self._is_wanted(begun):
            self._changed.set()
        self._look_done()

    async def _let_go(self, name: str) -> list[int]:
        """Which slices it had of a feed."""
        feed = self._feeds.pop(name, None)
        if feed is None:
            return []
        held = list(feed.driver.core.slices)
        await feed.stop()
        return held

    async def _begin(self, begun: FeedBegun, held: list[int]) -> None:
        name = begun.shared.feed.name
        work, measured = await self._make_work(begun.shared)
        try:
            if not held:
                await self._prepare(work, name)
            # The feed may have ended or been made anew while the work was prepared.
            if self._is_wanted(begun) and not self._leaving:
                self._adopt(FeedAtWork(begun, self._drive(begun, held, work, measured), work))
        finally:
            if name not in self._feeds:
                await asyncio.to_thread(work.close)

    def _adopt(self, feed: FeedAtWork) -> None:
        name = feed.begun.shared.feed.name
        self._feeds[name] = feed
        feed.driver.learn(self._channels.get(name, {}).values())
        self._unable.pop(name, None)
        self._greet(feed)

    def _drive(self, begun: FeedBegun, held: list[int], work: SliceWork, measured: bool) -> NodeDriver:
        feed = begun.shared.feed
        limits = SliceLimits(batch_seconds=begun.batch_seconds)
        capacity = self._settings.capacity or self._gauge.processors
        kept = [slice_ for slice_ in held if slice_ < feed.slices]
        core = NodeCore(self._settings.name, capacity, limits, kept)

        def say(message: FromNode) -> None:
            self.link.send(ToHead(feed.name, begun.incarnation, message))

        def stopped() -> None:
            log.info("the node has no slices of a feed any more", feed=feed.name)
            self._look_done()

        return NodeDriver(core, work, say, stopped, self._gauge.look if measured else _measure_nothing)

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
        if self._changing and not self._leaving:
            return
        cores = [feed.driver.core for feed in self._feeds.values()]
        if all(core.stopped for core in cores) and (cores or self._leaving):
            self.done.set()


def _measure_nothing() -> Usage | None:
    """Where Spark runs elsewhere, how busy this process is says nothing."""
    return None

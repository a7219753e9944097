"""What a worker does with several feeds, told what the head says without a socket: none waits for another's work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from tests.data.sharing.memory import MemoryFeed, MemoryWork
from tests.waiting import until_async
from tocsin.data.nodes.sharing import SharedFeed
from tocsin.data.sharing.node import SliceWork
from tocsin.data.sharing.wire import FeedBegun, FeedDeclined, FeedEnded, FromWorker, NodeWelcome, ToHead
from tocsin.errors import UnavailableError
from tocsin.settings import WorkerSettings
from tocsin.slices.messages import Hello
from tocsin.worker.worker import Worker


class Head:
    """Tells a worker of the feeds ``quick`` and ``slow``, and hears it. ``slow`` is prepared when ``warm`` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.warm = threading.Event()
        self.works: list[tuple[str, MemoryWork]] = []
        self.said: list[FromWorker] = []
        self.failing = False
        self.worker = Worker(WorkerSettings(name="n1", head="http://127.0.0.1:1", token="t"), self._make_work)
        monkeypatch.setattr(self.worker.link, "keep", asyncio.Event().wait)
        monkeypatch.setattr(self.worker.link, "send", self.said.append)

    async def _make_work(self, shared: SharedFeed) -> tuple[SliceWork, bool]:
        name = shared.feed.name
        work = MemoryWork(MemoryFeed(name))
        if name == "slow":
            work.warm = self.warm
        self.works.append((name, work))
        if name == "slow" and self.failing:
            await asyncio.to_thread(self.warm.wait, 60)
            raise UnavailableError("no log")
        return work, False

    def connect(self, *feeds: str) -> None:
        """A new connection, on which it is told of these: a name, and perhaps an incarnation after a colon."""
        self.said.clear()
        self.worker.connected(NodeWelcome("n1", [feed.split(":")[0] for feed in feeds]))
        for feed in feeds:
            self.begin(feed)

    def begin(self, feed: str) -> None:
        """A feed, or one that is made anew."""
        name, _, incarnation = feed.partition(":")
        self.worker.received(FeedBegun(MemoryFeed(name).share().shared, incarnation, 0.01))

    @property
    def hellos(self) -> list[str]:
        """The feeds and incarnations for which it has said hello on this connection."""
        said = [each for each in self.said if isinstance(each, ToHead) and isinstance(each.message, Hello)]
        return sorted(f"{each.feed}:{each.incarnation}" for each in said)

    def work(self, name: str, number: int = 0) -> MemoryWork:
        """The work that was made for a feed at first, or after so many others."""
        return [work for feed, work in self.works if feed == name][number]

    async def preparing(self, number: int = 0) -> None:
        """Waits until ``slow`` is being prepared."""
        await until_async(lambda: len([1 for feed, _ in self.works if feed == "slow"]) > number)
        await until_async(lambda: self.work("slow", number).preparing)


@pytest.fixture
async def head(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Head]:
    head = Head(monkeypatch)
    running = asyncio.create_task(head.worker.run())
    yield head
    head.warm.set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_feed_that_takes_long_to_prepare_keeps_no_other_from_saying_hello(head: Head) -> None:
    head.connect("slow:1", "quick:1")
    await head.preparing()
    await until_async(lambda: head.hellos == ["quick:1"])
    head.worker.lost()
    head.connect("slow:1", "quick:1")
    await until_async(lambda: head.hellos == ["quick:1"])
    assert head.worker.is_starting
    head.warm.set()
    await until_async(lambda: head.hellos == ["quick:1", "slow:1"])
    assert not head.worker.is_starting


async def test_a_feed_that_ends_while_it_is_prepared_is_let_go(head: Head) -> None:
    head.connect("slow:1", "quick:1")
    await head.preparing()
    head.worker.received(FeedEnded("slow"))
    head.warm.set()
    await until_async(lambda: head.work("slow").closed == 1)
    await until_async(lambda: head.hellos == ["quick:1"])
    assert head.worker.slices.keys() == {"quick"}
    assert not head.worker.problems


async def test_a_feed_that_is_made_anew_while_it_is_prepared_is_prepared_anew(head: Head) -> None:
    head.connect("slow:1")
    await head.preparing()
    head.worker.received(FeedEnded("slow"))
    head.begin("slow:2")
    head.warm.set()
    await until_async(lambda: head.hellos == ["slow:2"])
    assert [work.closed for _, work in head.works] == [1, 0]


async def test_what_was_prepared_while_the_head_was_away_is_told_to_the_one_who_is_back(head: Head) -> None:
    head.connect("slow:1")
    await head.preparing()
    head.worker.lost()
    head.warm.set()
    await until_async(lambda: "slow" in head.worker.slices)
    assert head.hellos == []
    head.connect("slow:1")
    await until_async(lambda: head.hellos == ["slow:1"])
    head.connect("slow:2")
    await until_async(lambda: head.hellos == ["slow:2"])
    assert [work.closed for _, work in head.works] == [1, 0]


async def test_that_a_feed_failed_which_is_no_more_is_told_to_nobody(head: Head) -> None:
    head.failing = True
    head.connect("slow:1", "quick:1")
    await until_async(lambda: head.hellos == ["quick:1"])
    head.worker.received(FeedEnded("slow"))
    head.warm.set()
    await until_async(lambda: not head.worker._changing)
    assert not any(isinstance(each, FeedDeclined) for each in head.said)
    assert not head.worker.problems


async def test_a_worker_that_is_to_leave_begins_with_nothing_that_it_has_prepared(head: Head) -> None:
    head.connect("slow:1")
    await head.preparing()
    head.worker.leave()
    await asyncio.wait_for(head.worker.done.wait(), 10)
    head.warm.set()
    await until_async(lambda: head.work("slow").closed == 1)
    assert head.hellos == []

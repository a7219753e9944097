"""Nodes that live and do not get on, over real sockets: others go on, and the head says who does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.data.sharing.memory import SLICES, MemoryFeed, MemoryWork
from tests.data.sharing.test_sharing import NODES, Site, begun, working
from tests.waiting import until_async
from tocsin.data.nodes.processing import ProcessedBatch
from tocsin.errors import UnavailableError
from tocsin.settings import Settings
from tocsin.slices.messages import Commit
from tocsin.slices.registry import NodeMember


class CutOff:
    """A node's way to the log, which is cut: it raises, or does not answer until it is mended."""

    def __init__(self, work: MemoryWork, hangs: bool) -> None:
        self._hangs, self._mended = hangs, threading.Event()
        work.process, work.backlog = self._process, self._backlog  # type: ignore[method-assign]

    def mend(self) -> None:
        """Whoever waits for an answer gets none."""
        self._mended.set()

    def _process(self, starts: Mapping[int, int]) -> ProcessedBatch:
        raise self._fail()

    def _backlog(self, starts: Mapping[int, int]) -> dict[int, int]:
        raise self._fail()

    def _fail(self) -> UnavailableError:
        if self._hangs:
            self._mended.wait(60)
        return UnavailableError("Kafka does not answer")


def node(site: Site, name: str) -> NodeMember:
    """As the head knows it."""
    found = site.heads._heads["reports"].core.registry.get(name)
    assert found is not None
    return found


async def until_nothing_waits(site: Site) -> None:
    """The nodes have seen that."""
    await site.until_stored()

    def idle() -> bool:
        reports = [member.report for member in site.heads._heads["reports"].core.registry]
        loads = [load for report in reports if report for load in report.slices]
        return len(loads) == SLICES and not any(load.backlog for load in loads)

    await until_async(idle, "reports that nothing waits")


async def test_a_node_that_loses_the_log_while_nothing_waits_loses_its_slices(settings: Settings) -> None:
    feed = MemoryFeed()
    async with begun(settings, feed, replace(NODES, local=False, stuck_seconds=2.0)) as site, working(site, "n1", "n2"):
        await site.until_owned("n1", "n2")
        await until_nothing_waits(site)
        CutOff(site.works["n1"], hangs=False)
        await until_async(lambda: node(site, "n1").problem, "a report of it")
        assert "Kafka does not answer" in site.heads.problem("reports")
        assert "node n1 does not get on" in site.heads.problem("reports")
        feed.publish(40)
        await site.until_stored()
        assert site.owners() == {"n2"}
        assert site.heads.problem("reports") == ""
        figures = site.heads.slices("reports")
        assert figures is not None
        assert [one.state for one in figures.nodes] == ["stuck", "serving"]


async def test_a_log_that_does_not_answer_is_told_and_its_slices_move(settings: Settings) -> None:
    feed = MemoryFeed()
    async with begun(settings, feed, replace(NODES, local=False, stuck_seconds=2.0)) as site, working(site, "n1", "n2"):
        await site.until_owned("n1", "n2")
        await until_nothing_waits(site)
        cut = CutOff(site.works["n1"], hangs=True)
        feed.publish(40)
        await site.until_stored()
        assert site.owners() == {"n2"}
        cut.mend()


async def test_one_slice_that_cannot_be_read_holds_up_no_other_and_is_named(settings: Settings) -> None:
    feed = MemoryFeed()
    async with begun(settings, feed, replace(NODES, local=False)) as site, working(site, "n1"):
        await site.until_owned("n1")
        await until_nothing_waits(site)
        plain = site.works["n1"].process

        def process(starts: Mapping[int, int]) -> ProcessedBatch:
            if 0 in starts and len(feed.log[0]) > starts[0]:
                raise UnavailableError("slice 0 cannot be read")
            return plain(starts)

        site.works["n1"].process = process  # type: ignore[method-assign]
        feed.publish(4 * SLICES)
        await until_async(lambda: feed.marked[1:] == feed.ends()[1:], "the other slices")
        await until_async(lambda: "slice 0 is left out by node n1" in site.heads.problem("reports"))
        feed.publish(SLICES)
        await until_async(lambda: feed.marked[1:] == feed.ends()[1:], "the other slices")
        figures = site.heads.slices("reports")
        assert figures is not None
        assert [one.left_out for one in figures.slices] == ["slice 0 cannot be read", "", "", ""]
        assert "slice 0 is left out" in site.workers["n1"].problems[0]
        site.works["n1"].process = plain  # type: ignore[method-assign]
        await site.until_stored()
        await until_async(lambda: site.heads.problem("reports") == "")


async def test_a_slow_lake_is_not_taken_for_silent_nodes(settings: Settings) -> None:
    feed, going_on = MemoryFeed(), threading.Event()
    nodes = replace(NODES, local=False, silent_seconds=2.0, stuck_seconds=2.0)
    async with begun(settings, feed, nodes) as site, working(site, "n1", "n2"):
        await site.until_owned("n1", "n2")
        await until_nothing_waits(site)
        since = [worker.link.since for worker in site.workers.values()]
        plain = feed.check

        def check(commit: Commit) -> None:
            going_on.wait(60)
            plain(commit)

        feed.check = check  # type: ignore[method-assign]
        feed.publish(40)
        began = asyncio.get_running_loop().time()

        def heard_or_lost() -> bool:
            heard = min(node(site, name).heard for name in ("n1", "n2"))
            return heard > began + 3 * nodes.silent_seconds or lost()

        def lost() -> bool:
            return [worker.link.since for worker in site.workers.values()] != since

        await until_async(heard_or_lost, "reports during the check")
        assert not lost()
        assert site.owners() == {"n1", "n2"}
        going_on.set()
        await site.until_stored()
        assert not lost()


async def test_a_feed_ends_without_waiting_for_a_function_that_takes_its_time(settings: Settings) -> None:
    feed = MemoryFeed()
    async with begun(settings, feed, NODES) as site:
        await site.until_owned("data")
        work = site.works["data"]
        work.cancellable = True
        work.going_on.clear()
        feed.publish(10)
        await until_async(lambda: work.waiting)
        await asyncio.to_thread(site.heads.end, "reports")
        assert work.failing == "it was given up"
        assert work.closed == 1


async def test_what_does_not_end_when_it_is_cancelled_is_cancelled_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, swallowed = MemoryFeed(), iter(range(2))
    async with begun(settings, feed, NODES) as site:
        await site.until_owned("data")
        work = site.works["data"]
        work.cancellable = True
        work.going_on.clear()
        feed.publish(10)
        await until_async(lambda: work.waiting)
        cancel = work.cancel
        monkeypatch.setattr(work, "cancel", lambda: cancel() if next(swallowed, None) is None else None)
        await asyncio.wait_for(asyncio.to_thread(site.heads.end, "reports"), 20)
        assert work.failing == "it was given up"
        assert work.closed == 1

"""Heads in a data cluster's server, and workers that dial it: real sockets, and a feed in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace

import pytest
from msgspec.structs import replace

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tests.data.server.running import running
from tests.data.sharing.memory import SLICES, MemoryFeed, MemoryWork, node_channel
from tests.waiting import until_async
from tocsin.balance.control.controller import Controller, Decision
from tocsin.balance.control.observation import Observation
from tocsin.data.nodes.sharing import FunctionLimits, SharedFeed
from tocsin.data.sharing.heads import Heads, patient_limits
from tocsin.data.sharing.local import LocalNode
from tocsin.data.sharing.node import SliceWork
from tocsin.data.sharing.wire import ForNode, ToNode
from tocsin.errors import InvalidError, NotFoundError, StorageError
from tocsin.settings import NodesSettings, Settings, WorkerSettings
from tocsin.slices.balancing import SlicePlanners, slice_thresholds
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import MayLeave
from tocsin.worker.worker import Worker

NODES = NodesSettings(share=True, settling_seconds=0.2, grace_seconds=0.3, silent_seconds=20.0, round_seconds=0.3)


@dataclass
class Site:
    """A data cluster's server with a head, and the workers that were started."""

    settings: Settings
    cluster: MemoryCluster
    tokens: MemoryTokens
    url: str
    feed: MemoryFeed
    heads: Heads
    workers: dict[str, Worker] = field(default_factory=dict)
    works: dict[str, MemoryWork] = field(default_factory=dict)
    unable: dict[str, str] = field(default_factory=dict)
    cold: set[str] = field(default_factory=set)

    def owners(self) -> set[str | None]:
        """Who has slices."""
        found = self.heads.slices("reports")
        return {one.owner for one in found.slices} if found else set()

    async def until_owned(self, *nodes: str) -> None:
        """These have all slices, and each of them some; meanwhile records come, for nothing is shared that is none."""

        def owned() -> bool:
            self.feed.publish(SLICES)
            return self.owners() == set(nodes)

        await until_async(owned, f"slices of {nodes}", pause=0.1)

    async def until_stored(self) -> None:
        """Every record is in the dataset once."""
        await until_async(lambda: self.feed.is_stored, "all records")


@asynccontextmanager
async def begun(settings: Settings, feed: MemoryFeed, nodes: NodesSettings, term: int = 1) -> AsyncIterator[Site]:
    cluster, tokens = MemoryCluster(), MemoryTokens()
    soon = SlicePlanners.by_name(thresholds=dataclass_replace(slice_thresholds(), cool_down=0.2, settle=0.5))
    cluster.heads = heads = Heads(asyncio.get_running_loop(), nodes, term, 0.01, soon)
    try:
        async with running(cluster, settings, tokens=tokens) as (url, _):
            works = {"data": MemoryWork(feed)}
            await asyncio.to_thread(heads.begin, feed.share(works["data"]))
            yield Site(settings, cluster, tokens, url, feed, heads, works=works)
    finally:
        await asyncio.to_thread(heads.end, "reports")


@pytest.fixture
async def site(settings: Settings) -> AsyncIterator[Site]:
    """A data cluster that is a node of its own."""
    async with begun(settings, MemoryFeed(), NODES) as site:
        yield site


@pytest.fixture
async def bare(settings: Settings) -> AsyncIterator[Site]:
    """A data cluster that leaves all work to others."""
    async with begun(settings, MemoryFeed(), replace(NODES, local=False)) as site:
        yield site


@asynccontextmanager
async def working(site: Site, *names: str, url: str | None = None) -> AsyncIterator[list[Worker]]:
    """Workers of these names, until the end of the block."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(_working(site, name, url or site.url)) for name in names]


@asynccontextmanager
async def _working(site: Site, name: str, url: str) -> AsyncIterator[Worker]:
    work = site.works[name] = MemoryWork(site.feed)
    if name in site.cold:
        work.warm.clear()

    async def make_work(_: SharedFeed) -> tuple[SliceWork, bool]:
        if name in site.unable:
            raise InvalidError(site.unable[name])
        return work, True

    worker = Worker(WorkerSettings(name=name, head=url, token=f"node-{name}"), make_work)
    site.workers[name] = worker
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_data_cluster_alone_processes_all_slices(site: Site) -> None:
    site.feed.publish(100)
    await site.until_stored()
    assert site.owners() == {"data"}


async def test_nodes_that_join_get_their_share_while_records_come(site: Site) -> None:
    await site.until_owned("data")
    async with working(site, "n1", "n2"):
        await site.until_owned("data", "n1", "n2")
        await site.until_stored()


async def test_a_node_is_given_nothing_before_it_could_process_it_at_once(site: Site) -> None:
    await site.until_owned("data")
    site.cold.add("n1")
    async with working(site, "n1") as (worker,):
        await until_async(lambda: site.works["n1"].preparing)
        site.feed.publish(100)
        await site.until_stored()
        assert worker.is_starting
        found = site.heads.slices("reports")
        assert found is not None
        assert [node.name for node in found.nodes] == ["data"]
        site.works["n1"].warm.set()
        await site.until_owned("data", "n1")
        await site.until_stored()


async def test_a_node_that_leaves_ends_when_others_have_its_slices(bare: Site) -> None:
    async with working(bare, "n1", "n2") as (first, _):
        await bare.until_owned("n1", "n2")
        bare.feed.publish(200)
        first.leave()
        await asyncio.wait_for(first.done.wait(), 60)
        assert bare.owners() == {"n2"}
        await bare.until_stored()


async def test_the_last_node_does_not_leave_before_somebody_else_comes(bare: Site) -> None:
    async with working(bare, "n1") as (first,):
        await bare.until_owned("n1")
        first.leave()
        async with working(bare, "n2"):
            await asyncio.wait_for(first.done.wait(), 60)
            await bare.until_owned("n2")


async def test_slices_of_a_node_that_dies_are_taken_over(bare: Site) -> None:
    async with working(bare, "n1"):
        async with working(bare, "n2"):
            await bare.until_owned("n1", "n2")
            bare.feed.publish(400)
        await bare.until_owned("n1")
        await bare.until_stored()


async def test_without_any_node_health_says_so_and_nothing_is_lost(bare: Site) -> None:
    bare.feed.publish(10)
    await until_async(lambda: "no processing node" in bare.heads.problem("reports"))
    async with working(bare, "n1"):
        await bare.until_stored()
        assert bare.heads.problem("reports") == ""


async def test_what_the_disk_refuses_is_processed_again(bare: Site) -> None:
    async with working(bare, "n1"):
        bare.feed.refusing = StorageError("the disk is full")
        bare.feed.publish(10)
        await until_async(lambda: "the disk is full" in bare.heads.problem("reports"))
        bare.feed.refusing = None
        await bare.until_stored()
        await until_async(lambda: not bare.heads.problem("reports"))


def declined(site: Site) -> dict[str, str]:
    found = site.heads.slices("reports")
    return found.declined if found else {}


async def test_a_node_that_may_not_run_a_feeds_function_says_so_and_gets_nothing_of_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.worker.worker._FUNCTION_SECONDS", 0.1)
    site.unable["n1"] = "not allowed here"
    async with working(site, "n1") as (worker,):
        await until_async(lambda: declined(site) == {"n1": "not allowed here"})
        assert worker.problems == ["feed reports: not allowed here"]
        site.feed.publish(100)
        await site.until_stored()
        assert site.owners() == {"data"}
        # An operator allows it.
        del site.unable["n1"]
        await site.until_owned("data", "n1")
        assert declined(site) == {}
        assert worker.problems == []
        await site.until_stored()


async def test_what_a_node_cannot_do_is_told_again_of_a_feed_that_is_made_anew(site: Site) -> None:
    site.unable["n1"] = "not allowed here"
    async with working(site, "n1"):
        await until_async(lambda: "n1" in declined(site))
        await asyncio.to_thread(site.heads.end, "reports")
        await asyncio.to_thread(site.heads.begin, site.feed.share())
        await until_async(lambda: "n1" in declined(site))


async def test_who_is_gone_is_not_told_of_any_more(site: Site) -> None:
    site.unable["n1"] = "not allowed here"
    async with working(site, "n1"):
        await until_async(lambda: "n1" in declined(site))
    await until_async(lambda: declined(site) == {})


async def test_where_the_data_cluster_cannot_run_the_function_others_do_until_it_can(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.data.sharing.heads._AGAIN_SECONDS", 0.1)
    await asyncio.to_thread(site.heads.end, "reports")
    unable = ["no such module"]
    await asyncio.to_thread(site.heads.begin, site.feed.share(unable=unable))
    assert declined(site) == {"data": "no such module"}
    await until_async(lambda: "data cannot: no such module" in site.heads.problem("reports"))
    async with working(site, "n1"):
        await site.until_owned("n1")
        await site.until_stored()
        unable.clear()
        await site.until_owned("data", "n1")
        assert declined(site) == {}


def test_a_feed_with_a_function_is_waited_for_as_long_as_that_may_take() -> None:
    plain = MemoryFeed().share().shared
    slow = replace(plain, feed=replace(plain.feed, processed_by="a:b"), function=FunctionLimits(100.0))
    limits = SliceLimits(stuck_seconds=50.0)
    assert patient_limits(limits, plain) == limits
    assert patient_limits(limits, slow).stuck_seconds == 100.0 * (8 + SLICES)


async def test_nobody_loses_its_connection_while_the_storage_does_not_answer(bare: Site) -> None:
    async with working(bare, "n1") as (worker,):
        await bare.until_owned("n1")
        connected = worker.link.since
        bare.feed.unreachable = True
        bare.feed.publish(10)
        await until_async(lambda: "the store does not answer" in bare.heads.problem("reports"))
        bare.feed.unreachable = False
        await bare.until_stored()
        assert worker.link.since == connected
        assert bare.heads.problem("reports") == ""


async def test_a_node_that_cannot_read_the_log_gets_nothing_while_others_can(bare: Site) -> None:
    async with working(bare, "n1"):
        bare.works["n1"].unprepared = "the log cannot be read from here"
        await until_async(lambda: bool(bare.workers["n1"].problems))
        async with working(bare, "n2"):
            await bare.until_owned("n2")
            await bare.until_stored()


async def test_a_batch_that_fails_is_tried_again_and_told(bare: Site) -> None:
    async with working(bare, "n1") as (worker,):
        bare.works["n1"].failing = "Kafka does not answer"
        bare.feed.publish(10)
        await until_async(lambda: worker.problems == ["feed reports: Kafka does not answer"])
        bare.works["n1"].failing = ""
        await bare.until_stored()
        assert worker.problems == []


async def test_the_next_head_lets_nodes_keep_what_they_had(settings: Settings) -> None:
    feed, nodes = MemoryFeed(), replace(NODES, local=False, settling_seconds=30.0)
    async with AsyncExitStack() as workers:
        async with begun(settings, feed, replace(nodes, settling_seconds=0.2)) as first:
            port = int(first.url.rpartition(":")[2])
            await workers.enter_async_context(working(first, "n1", "n2"))
            feed.publish(100)
            await first.until_owned("n1", "n2")
            await first.until_stored()
            had = _shares(first)
        feed.publish(100)
        same = replace(settings, data=replace(settings.data, port=port))
        async with begun(same, feed, nodes, term=2) as second:
            await second.until_owned("n1", "n2")
            assert _shares(second) == had
            await second.until_stored()
            await workers.aclose()


def _shares(site: Site) -> dict[int, str | None]:
    found = site.heads.slices("reports")
    assert found is not None
    return {one.slice: one.owner for one in found.slices}


async def test_a_feed_that_is_made_anew_is_learnt_anew(site: Site) -> None:
    async with working(site, "n1"):
        site.feed.publish(100)
        await site.until_owned("data", "n1")
        await site.until_stored()
        await asyncio.to_thread(site.heads.end, "reports")
        assert site.heads.slices("reports") is None
        site.feed.publish(100)
        await asyncio.to_thread(site.heads.begin, site.feed.share())
        await site.until_owned("data", "n1")
        await site.until_stored()


async def test_a_drained_node_ends_and_stays_away_until_it_may_come_back(site: Site) -> None:
    async with working(site, "n1") as (worker,):
        await site.until_owned("data", "n1")
        site.heads.drain("n1", True)
        await asyncio.wait_for(worker.done.wait(), 60)
        await site.until_owned("data")
    assert site.heads.drained == ["n1"]
    async with working(site, "n1") as (worker,):
        await asyncio.wait_for(worker.done.wait(), 60)
    site.heads.drain("n1", False)
    async with working(site, "n1"):
        await site.until_owned("data", "n1")


async def test_the_data_cluster_can_be_drained_and_come_back(site: Site) -> None:
    async with working(site, "n1"):
        await site.until_owned("data", "n1")
        site.heads.drain("data", True)
        site.feed.publish(50)
        await site.until_owned("n1")
        site.heads.drain("data", False)
        await site.until_owned("data", "n1")
        await site.until_stored()


async def test_a_data_cluster_that_is_wanted_again_just_when_it_may_leave_comes_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[ToNode] = []

    def send(local: LocalNode, message: ForNode) -> None:
        sent(local, message)
        if isinstance(message, ToNode) and isinstance(message.message, MayLeave):
            said.append(message)
            site.heads.drain("data", False)

    async with working(site, "n1"):
        await site.until_owned("data", "n1")
        sent = LocalNode.send
        monkeypatch.setattr(LocalNode, "send", send)
        site.heads.drain("data", True)
        await until_async(lambda: said)
        await site.until_owned("data", "n1")
        await site.until_stored()


async def test_nobody_can_drain_a_node_that_was_never_there(site: Site) -> None:
    with pytest.raises(NotFoundError, match="there is no processing node n9"):
        site.heads.drain("n9", True)


async def test_figures_say_who_has_what_and_what_waits(bare: Site) -> None:
    async with working(bare, "n1"):
        await until_async(lambda: bare.owners() == {"n1"})
        bare.works["n1"].going_on.clear()
        bare.feed.publish(3, slice_=2)

        def waiting() -> bool:
            found = bare.heads.slices("reports")
            return found is not None and found.slices[2].backlog == 300

        await until_async(waiting, "a backlog of 300 bytes")
        found = bare.heads.slices("reports")
        assert found is not None
        (node,) = found.nodes
        assert (node.name, node.slices, node.backlog) == ("n1", SLICES, 300)
        bare.works["n1"].going_on.set()
        await bare.until_stored()
        await until_async(_counted(bare), "a count of records")


def _counted(site: Site) -> Callable[[], bool]:
    def counted() -> bool:
        found = site.heads.slices("reports")
        return found is not None and [one.records for one in found.slices] == [0, 0, 3, 0]

    return counted


async def test_a_fault_after_a_commit_counts_as_what_the_dataset_says(bare: Site) -> None:
    async with working(bare, "n1"):
        await until_async(lambda: bare.owners() == {"n1"})
        bare.feed.faulty = True
        bare.feed.publish(30)
        await bare.until_stored()


async def test_a_planner_that_fails_is_asked_again(bare: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def fail(controller: Controller, now: float, observed: Observation) -> Decision:
        asked.append(now)
        raise RuntimeError("no plan")

    monkeypatch.setattr(Controller, "decide", fail)
    async with working(bare, "n1"):
        await until_async(lambda: bare.owners() == {"n1"})
        async with working(bare, "n2"):

            def asked_again() -> bool:
                bare.feed.publish(SLICES)
                return len(asked) > 1

            await until_async(asked_again, "a second question")
            monkeypatch.undo()
            await bare.until_owned("n1", "n2")


async def test_a_node_finds_the_head_where_it_is(bare: Site) -> None:
    async with working(bare, "n1", url=f"http://127.0.0.1:1,{bare.url}"):
        bare.feed.publish(10)
        await bare.until_stored()


async def knowing(site: Site, names: str, **channels: str) -> None:
    """Waits until nodes match these channels, by their tags; the data cluster's own is called data."""

    def known() -> bool:
        return all(site.works[name].channels == channels for name in names.split())

    await until_async(known, f"{channels} at {names}")


async def test_channels_are_told_to_nodes_here_and_there_and_withdrawn(site: Site) -> None:
    async with working(site, "n1", "n2"):
        await until_async(lambda: site.workers["n1"].link.is_up and site.workers["n2"].link.is_up)
        await asyncio.to_thread(site.heads.tell, "Reports", node_channel("A", "1.1"))
        site.heads.tell("Reports", node_channel("B", "1.2"))
        await knowing(site, "data n1 n2", A="1.1", B="1.2")
        site.heads.tell("Reports", node_channel("A", "1.3"))
        await knowing(site, "data n1 n2", A="1.3", B="1.2")
        await asyncio.to_thread(site.heads.withdraw, "Reports", "B")
        await knowing(site, "data n1 n2", A="1.3")


async def test_channels_of_another_dataset_concern_nobody_here(site: Site) -> None:
    async with working(site, "n1"):
        await until_async(lambda: site.workers["n1"].link.is_up)
        site.heads.tell("Others", node_channel("O", "1.1"))
        site.heads.withdraw("Others", "A")
        site.heads.withdraw("Reports", "never told")
        site.heads.tell("Reports", node_channel("A", "1.2"))
        await knowing(site, "data n1", A="1.2")


async def test_who_joins_later_is_told_of_the_channels_there_are(site: Site) -> None:
    for name, tag in (("A", "1.1"), ("B", "1.2"), ("A", "1.3")):
        site.heads.tell("Reports", node_channel(name, tag))
    site.heads.withdraw("Reports", "B")
    await knowing(site, "data", A="1.3")
    async with working(site, "n1"):
        await knowing(site, "n1", A="1.3")


async def test_who_was_away_knows_what_has_changed_meanwhile(site: Site) -> None:
    site.heads.tell("Reports", node_channel("A", "1.1"))
    site.heads.tell("Reports", node_channel("B", "1.2"))
    async with working(site, "n1"):
        await knowing(site, "n1", A="1.1", B="1.2")
        [number] = [number for number, one in site.heads._connections.items() if one.node == "n1"]
        site.heads._close(number, "it is cut off")
        await until_async(lambda: not site.workers["n1"].link.is_up)
        site.heads.tell("Reports", node_channel("A", "1.3"))
        site.heads.withdraw("Reports", "B")
        await until_async(lambda: site.workers["n1"].link.is_up)
        await knowing(site, "n1", A="1.3")
        assert site.works["n1"].closed == 0


async def test_a_feed_that_is_made_anew_has_the_same_channels_and_what_was_kept_for_the_old_one_is_let_go(
    site: Site,
) -> None:
    site.heads.tell("Reports", node_channel("A", "1.1"))
    async with working(site, "n1"):
        await knowing(site, "data n1", A="1.1")
        old = site.works["data"]
        for work in site.works.values():
            work.channels = {}
        await asyncio.to_thread(site.heads.end, "reports")
        assert old.closed == 1
        site.works["data"] = MemoryWork(site.feed)
        await asyncio.to_thread(site.heads.begin, site.feed.share(site.works["data"]))
        await knowing(site, "data n1", A="1.1")
        assert site.works["n1"].closed == 1
        site.heads.tell("Reports", node_channel("A", "1.2"))
        await knowing(site, "data n1", A="1.2")
    assert site.works["n1"].closed == 2


async def test_a_drained_data_cluster_knows_the_channels_when_it_comes_back(site: Site) -> None:
    site.heads.tell("Reports", node_channel("A", "1.1"))
    async with working(site, "n1"):
        await site.until_owned("data", "n1")
        site.heads.drain("data", True)
        await site.until_owned("n1")
        site.heads.tell("Reports", node_channel("A", "1.2"))
        site.heads.drain("data", False)
        await site.until_owned("data", "n1")
        await knowing(site, "data n1", A="1.2")
        assert site.works["data"].closed == 0

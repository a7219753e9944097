"""Nodes that offer what cannot be stored, or takes long to be looked into: others neither wait nor are refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping

import pytest

from tests.data.sharing.memory import MemoryFeed
from tests.data.sharing.test_sharing import Site, bare, working
from tests.waiting import until_async
from tocsin.data.lake.unclaimed import OutdatedError
from tocsin.data.nodes.processing import ProcessedBatch
from tocsin.data.sharing.head import HeadDriver
from tocsin.slices import actions, events
from tocsin.slices.actions import StoreCommits
from tocsin.slices.messages import Commit, SlicePart

__all__ = ["bare"]


class Written:
    """The names of the files that a node has written."""

    def __init__(self, site: Site, node: str) -> None:
        self.names: set[str] = set()
        work = site.works[node]
        self._process, work.process = work.process, self._note  # type: ignore[method-assign]

    def _note(self, starts: Mapping[int, int]) -> ProcessedBatch:
        batch = self._process(starts)
        self.names.update(batch.files)
        return batch


def head_of(site: Site) -> HeadDriver:
    return site.heads._heads["reports"]


async def settle(site: Site) -> None:
    """The two nodes have slices, everything is stored, and no slice moves from now on."""
    await site.until_owned("n1", "n2")
    core = head_of(site).core
    core.balancer.look = lambda *_: None  # type: ignore[method-assign]
    await until_async(lambda: not core.sessions, "the end of all sessions")
    assert site.owners() == {"n1", "n2"}
    await site.until_stored()


def slices_of(site: Site, node: str) -> set[int]:
    found = site.heads.slices("reports")
    return {one.slice for one in found.slices if one.owner == node} if found else set()


def is_stored(feed: MemoryFeed, slices: set[int]) -> bool:
    return all(feed.marked[slice_] == len(feed.log[slice_]) for slice_ in slices)


async def test_files_that_are_gone_when_they_are_to_be_stored_hold_up_their_own_node_only(bare: Site) -> None:
    feed, plain = bare.feed, bare.feed.store
    async with working(bare, "n1", "n2"):
        await settle(bare)
        written, losing = Written(bare, "n1"), threading.Event()
        losing.set()

        def store(wanted: StoreCommits) -> None:
            if losing.is_set():
                with feed.lock:
                    for name in written.names:
                        feed.files.pop(name, None)
            plain(wanted)

        feed.store = store  # type: ignore[method-assign]
        before = {node: slices_of(bare, node) for node in ("n1", "n2")}
        marked = list(feed.marked)
        for _ in range(5):
            feed.publish(40)
            await until_async(lambda: is_stored(feed, before["n2"]), "what the other node has")
        assert [feed.marked[slice_] for slice_ in before["n1"]] == [marked[slice_] for slice_ in before["n1"]]
        await until_async(lambda: "(offered by n1)" in bare.heads.problem("reports"), "the name of the node")
        losing.clear()
        await bare.until_stored()
        await until_async(lambda: not bare.heads.problem("reports"))


async def test_what_cannot_be_stored_any_more_is_refused_and_made_anew_on_the_same_connection(bare: Site) -> None:
    feed, plain = bare.feed, bare.feed.check
    refused = iter(range(3))

    def check(commit: Commit) -> None:
        if next(refused, None) is not None:
            raise OutdatedError("it was written too long ago")
        plain(commit)

    async with working(bare, "n1") as (worker,):
        await bare.until_owned("n1")
        await bare.until_stored()
        since = worker.link.since
        feed.check = check  # type: ignore[method-assign]
        feed.publish(40)
        await bare.until_stored()
        assert next(refused, None) is None
        assert worker.link.since == since


class SlowChecks:
    """Whatever has a part of certain slices is looked into for long, until it may go on."""

    def __init__(self, feed: MemoryFeed, slices: set[int]) -> None:
        self.going_on, self.now, self.most = threading.Event(), 0, 0
        self._plain, self._slices, self._lock = feed.check, slices, threading.Lock()
        feed.check = self._check  # type: ignore[method-assign]

    def _check(self, commit: Commit) -> None:
        if any(part.slice in self._slices for part in commit.parts):
            self._count(1)
            self.going_on.wait(60)
            self._count(-1)
        self._plain(commit)

    def _count(self, more: int) -> None:
        with self._lock:
            self.now += more
            self.most = max(self.most, self.now)


@pytest.fixture
def checks(bare: Site) -> Iterator[SlowChecks]:
    """None of them is slow yet."""
    made = SlowChecks(bare.feed, set())
    yield made
    made.going_on.set()


async def test_a_node_whose_files_take_long_to_be_looked_into_waits_by_itself(bare: Site, checks: SlowChecks) -> None:
    feed = bare.feed
    async with working(bare, "n1", "n2"):
        await settle(bare)
        mine, others = slices_of(bare, "n1"), slices_of(bare, "n2")
        checks._slices |= mine
        parts = [SlicePart(slice_, head_of(bare).core.ownership[slice_].epoch, 0, 1, 1) for slice_ in mine]
        # However much it offers, and however often it comes anew: a thread that looks is not stopped.
        talk = [asyncio.create_task(head_of(bare).hear(9, "n1", Commit(9, parts, []))) for _ in range(50)]
        await until_async(lambda: checks.now == 1)
        for task in talk[:25]:
            task.cancel()
        for _ in range(3):
            feed.publish(40)
            await until_async(lambda: is_stored(feed, others), "what the other node has")
        assert checks.most == 1
        checks.going_on.set()
        await asyncio.gather(*talk, return_exceptions=True)
        await bare.until_stored()
        assert checks.most == 1


async def test_what_a_node_offers_of_others_slices_is_no_excuse_for_their_owners(
    bare: Site, checks: SlowChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(bare, "n1", "n2"):
        await settle(bare)
        head, mine, others = head_of(bare), slices_of(bare, "n1"), slices_of(bare, "n2")
        checks._slices |= mine | others
        epochs = {slice_: head.core.ownership[slice_].epoch for slice_ in mine | others}
        parts = [SlicePart(slice_, epoch, 0, 1, 1) for slice_, epoch in epochs.items()]
        talk = asyncio.create_task(head.hear(9, "n1", Commit(9, parts, [])))
        await until_async(lambda: checks.now == 1)
        seen, handle = list[frozenset[int]](), head.core.handle

        def noted(now: float, event: events.Event) -> list[actions.Action]:
            if isinstance(event, events.LogReaches):
                seen.append(event.checking)
            return handle(now, event)

        monkeypatch.setattr(head.core, "handle", noted)
        await until_async(lambda: seen, "a look at the log")
        assert seen[-1] == mine
        checks.going_on.set()
        await asyncio.gather(talk, return_exceptions=True)

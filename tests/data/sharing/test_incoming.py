"""What a node says while a commit of it is being checked."""

from __future__ import annotations

import asyncio

import pytest

from tests.waiting import until_async
from tocsin.data.sharing.incoming import IncomingMessages
from tocsin.data.sharing.wire import FromWorker, ToHead
from tocsin.errors import InvalidError
from tocsin.slices.messages import Commit, FromNode, Leave, NodeReport

REPORT = NodeReport(0.0, 0.0, 0.0, 0.0, [])


def said(message: FromNode, feed: str = "reports", incarnation: str = "1") -> ToHead:
    return ToHead(feed, incarnation, message)


class Lake:
    """A head whose checks wait until they may go on; ``wrong`` commits make no sense."""

    def __init__(self, most: int = 16) -> None:
        self.heard: list[FromWorker] = []
        self.failures: list[Exception] = []
        self.going_on = asyncio.Event()
        self.wrong: set[int] = set()
        self.incoming = IncomingMessages(self.hear, self.failures.append, most)

    async def hear(self, message: FromWorker) -> None:
        if isinstance(message, ToHead) and isinstance(message.message, Commit):
            if message.feed == "reports":
                await self.going_on.wait()
            if message.message.batch in self.wrong:
                raise InvalidError("a file is offered that is not there")
        self.heard.append(message)


async def test_reports_pass_by_and_all_else_about_the_feed_waits_in_order() -> None:
    lake = Lake()
    first, second, leave = said(Commit(1, [], [])), said(Commit(2, [], [])), said(Leave())
    for message in (first, second, leave, said(REPORT)):
        await lake.incoming.put(message)
    assert lake.heard == [said(REPORT)]
    lake.going_on.set()
    await until_async(lambda: lake.heard == [said(REPORT), first, second, leave])
    # Nothing waits any more, and nothing has to.
    await lake.incoming.put(leave)
    assert lake.heard[-1] == leave
    assert len(lake.heard) == 5


async def test_other_feeds_and_the_next_incarnation_do_not_wait() -> None:
    lake = Lake()
    await lake.incoming.put(said(Commit(1, [], [])))
    await lake.incoming.put(said(Commit(1, [], []), "other"))
    await lake.incoming.put(said(Leave(), incarnation="2"))
    await until_async(lambda: len(lake.heard) == 2)
    await lake.incoming.stop()


async def test_who_offers_more_than_may_wait_is_read_no_more_until_there_is_room() -> None:
    lake = Lake(most=2)
    for batch in range(2):
        await lake.incoming.put(said(Commit(batch, [], [])))
    third = asyncio.create_task(lake.incoming.put(said(Commit(2, [], []))))
    await lake.incoming.put(said(REPORT))
    assert not third.done()
    lake.going_on.set()
    await third
    await until_async(lambda: len(lake.heard) == 4)


async def test_what_makes_no_sense_is_told_and_what_rests_on_it_is_not_heard() -> None:
    lake = Lake()
    lake.wrong.add(1)
    await lake.incoming.put(said(Commit(1, [], [])))
    await lake.incoming.put(said(Leave()))
    lake.going_on.set()
    await until_async(lambda: lake.failures)
    assert str(lake.failures[0]) == "a file is offered that is not there"
    assert lake.heard == []


async def test_what_is_over_is_passed_on_no_more() -> None:
    lake = Lake()
    await lake.incoming.put(said(Commit(1, [], [])))
    await lake.incoming.stop()
    lake.going_on.set()
    await asyncio.sleep(0)
    assert lake.heard == []
    assert lake.failures == []


async def test_what_had_not_to_wait_raises_at_once() -> None:
    async def refuse(_: FromWorker) -> None:
        raise InvalidError("no")

    with pytest.raises(InvalidError):
        await IncomingMessages(refuse, lambda _: None).put(said(Leave()))

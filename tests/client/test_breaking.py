"""Connections break, brokers die and move their subscribers; the application gets each note once and in order."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import tocsin
from tocsin.client.mailbox import Mailbox
from tocsin.client.note import Gap
from tocsin.client.notices import Notice, NoticeKind
from tocsin.client.subscriber import Subscriber
from tocsin.testing.sandbox import QUICK, Sandbox


async def until(happened: Mailbox[Notice], kind: NoticeKind) -> Notice:
    async for notice in happened:
        if notice.kind is kind:
            return notice
    raise AssertionError(f"it ended without {kind}")


def listen(me: Subscriber) -> Mailbox[Notice]:
    happened = me.events()
    assert isinstance(happened, Mailbox)
    return happened


async def test_a_broken_connection_is_made_again_and_what_was_missed_comes(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        happened = listen(me)
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires")
        assert not (await anext(fires)).recovered
        sandbox.cut()
        await until(happened, NoticeKind.RECONNECTING)
        sandbox.execute("Fires", 2)
        await until(happened, NoticeKind.CONNECTED)
        sandbox.execute("Fires")
        notes = [await anext(fires) for _ in range(3)]
        assert [note.execution for note in notes] == [2, 3, 4]
        assert [note.recovered for note in notes][-1] is False


async def test_a_move_is_seen_only_by_who_listens(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        happened = listen(me)
        fires = await me.subscribe("Fires", v=1)
        (home,) = sandbox.where()
        before = (await until(happened, NoticeKind.CONNECTED)).url
        sandbox.execute("Fires", 3)
        await sandbox.drain(home)
        assert (await until(happened, NoticeKind.MOVED)).url != before
        sandbox.execute("Fires", 3)
        notes = [await anext(fires) for _ in range(6)]
        assert [note.execution for note in notes] == [1, 2, 3, 4, 5, 6]
        assert not any(note.recovered for note in notes)


async def test_a_broker_dies_and_the_others_take_over(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires", 2)
        assert (await anext(fires)).execution == 1
        (home,) = sandbox.where()
        sandbox.kill(home)
        sandbox.execute("Fires", 2)
        assert [(await anext(fires)).execution for _ in range(3)] == [2, 3, 4]
        assert sandbox.where() == [({"a", "b"} - {home}).pop()]


async def test_a_connection_that_says_nothing_any_more_is_given_up(sandbox: Sandbox) -> None:
    rules = replace(QUICK, ping_seconds=0.05, pong_seconds=0.05)
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=rules) as me:
        happened = listen(me)
        fires = await me.subscribe("Fires", v=1)
        sandbox.freeze()
        await until(happened, NoticeKind.RECONNECTING)
        await until(happened, NoticeKind.CONNECTED)
        sandbox.execute("Fires")
        assert (await anext(fires)).execution == 1


async def test_what_is_asked_while_away_is_answered_when_back(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        happened = listen(me)
        sandbox.calls.away = True
        sandbox.cut()
        await until(happened, NoticeKind.RECONNECTING)
        asked = asyncio.create_task(me.subscribe("Fires", v=1))
        sent = asyncio.create_task(me.publish("places", [{"x": 1}]))
        sandbox.calls.away = False
        assert (await asked).channel == "Fires"
        assert (await sent).accepted == 1


async def test_what_is_kept_no_longer_is_told_as_a_gap_and_the_rest_comes(sandbox: Sandbox) -> None:
    missed = list[Gap]()
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1, on_gap=missed.append)
        sandbox.execute("Fires")
        await anext(fires)
        for broker in list(sandbox.nodes):
            sandbox.kill(broker)
        sandbox.data.kept = 2
        sandbox.execute("Fires", 5)
        await sandbox.start("a")
        assert [(await anext(fires)).execution for _ in range(2)] == [5, 6]
        assert [(gap.channel, gap.first, gap.last) for gap in missed] == [("Fires", 2, 4)]
        assert fires.taken == 5

"""Taking notes: what is acknowledged when, who shares what, and what a slow program costs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import tocsin
from tocsin.client.subscriber import Subscriber
from tocsin.client.subscription import Subscription
from tocsin.errors import NotFoundError
from tocsin.testing.sandbox import QUICK, Sandbox


async def taken(subscription: Subscription, count: int) -> list[int]:
    return [(await anext(subscription)).execution for _ in range(count)]


async def came_again(sandbox: Sandbox, token: str, count: int) -> list[int]:
    """What another run of the program gets of Fires before anything new."""
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        return await taken(await me.subscribe("Fires", v=1), count)


async def test_taking_the_next_note_acknowledges_the_one_before(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires", 4)
        assert await taken(fires, 3) == [1, 2, 3]
    assert await came_again(sandbox, token, 2) == [3, 4]


async def test_leaving_the_loop_changes_nothing(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires", 3)
        async for note in fires:
            assert note.execution == 1
            break
        assert [await taken(fires, 1), await taken(fires, 1)] == [[2], [3]]


async def test_by_hand_only_what_has_nothing_undone_before_it_is_acknowledged(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        fires = await me.subscribe("Fires", acknowledge="manual", v=1)
        sandbox.execute("Fires", 4)
        notes = [await anext(fires) for _ in range(4)]
        for index in (1, 0, 3, 3):
            notes[index].done()
    assert await came_again(sandbox, token, 2) == [3, 4]


async def test_equal_subscriptions_share_a_number_and_each_gets_every_note(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        quick, slow = await me.subscribe("Fires", v=1), await me.subscribe("Fires", v=1)
        assert quick.number == slow.number
        sandbox.execute("Fires", 4)
        assert await taken(quick, 4) == [1, 2, 3, 4]
        assert await taken(slow, 2) == [1, 2]
    assert await came_again(sandbox, token, 3) == [2, 3, 4]


async def test_what_one_reader_closes_the_other_keeps(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        one, two = await me.subscribe("Fires", v=1), await me.subscribe("Fires", v=1)
        sandbox.execute("Fires", 2)
        assert await taken(two, 2) == [1, 2]
        await one.close()
        assert [note async for note in one] == []
        sandbox.execute("Fires")
        assert await taken(two, 1) == [3]
    assert await came_again(sandbox, token, 1) == [3]


async def test_the_last_to_close_unsubscribes(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires", 2)
        await fires.close()
        await fires.close()
        assert [note async for note in fires] == []
        again = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires")
        assert await taken(again, 1) == [3]


async def test_closing_while_the_same_is_being_asked_for_keeps_it(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        first = await me.subscribe("Fires", v=1)
        again, _ = await asyncio.gather(me.subscribe("Fires", v=1), first.close())
        sandbox.execute("Fires")
        assert await taken(again, 1) == [1]


async def test_a_program_that_takes_nothing_holds_no_more_than_it_is_allowed(sandbox: Sandbox) -> None:
    rules = replace(QUICK, backlog_notes=5)
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=rules) as me:
        fires, floods = await me.subscribe("Fires", v=1), await me.subscribe("Floods", v=1)
        sandbox.execute("Fires", 100)
        sandbox.execute("Floods")
        assert await taken(floods, 1) == [1]
        assert held(fires) <= 5
        assert await taken(fires, 100) == list(range(1, 101))


async def test_notes_that_nobody_asked_for_are_bounded_too(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        await me.subscribe("Fires", v=1)
    sandbox.execute("Fires", 50)
    async with tocsin.connect(sandbox.url, token, rules=replace(QUICK, backlog_notes=5)) as me:
        floods = await me.subscribe("Floods", v=1)
        sandbox.execute("Floods")
        assert await taken(floods, 1) == [1]
        assert await taken(await me.subscribe("Fires", v=1), 50) == list(range(1, 51))


async def test_a_channel_that_is_gone_ends_what_reads_it(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires")
        await anext(fires)
        reading = asyncio.create_task(anext(aiter(fires)))
        refuse(me, fires, NotFoundError("there is no channel Fires"))
        with pytest.raises(NotFoundError):
            await reading
        assert (await me.subscribe("Floods")).channel == "Floods"


def held(subscription: Subscription) -> int:
    return len(subscription._mailbox._items)


def refuse(me: Subscriber, subscription: Subscription, error: Exception) -> None:
    """As when a broker that takes over cannot attach a subscription any more."""
    (shared,) = [each for each in me._subscriptions._shared.values() if subscription in each.readers]
    me._subscriptions.refused(shared.ref, error)

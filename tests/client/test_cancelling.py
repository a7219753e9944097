"""A call may be given up at any moment, as ``asyncio.timeout`` does, and nothing is lost or left behind by it."""

from __future__ import annotations

import asyncio

import pytest

import tocsin
from tocsin.client.mailbox import Mailbox
from tocsin.testing.sandbox import QUICK, Sandbox


def running() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("tocsin ")}


async def test_entering_is_given_up_and_leaves_nothing_behind(sandbox: Sandbox) -> None:
    sandbox.mute.update(sandbox.nodes)
    me = tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await me.__aenter__()
    assert running() == set()


async def test_leaving_leaves_nothing_behind(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        await me.subscribe("Fires")
        assert running()
    assert running() == set()


async def test_waiting_for_a_note_is_given_up_and_the_note_comes_later(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await anext(fires)
        sandbox.execute("Fires")
        assert (await anext(fires)).execution == 1


async def test_a_note_that_comes_as_its_reader_is_given_up_is_not_lost() -> None:
    mailbox: Mailbox[int] = Mailbox()
    reading = asyncio.create_task(anext(aiter(mailbox)))
    await asyncio.sleep(0)
    mailbox.put(1)
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert await anext(mailbox) == 1


async def test_a_subscription_given_up_half_way_is_taken_up_by_the_next_call(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        asking = asyncio.create_task(me.subscribe("Fires", v=1))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        floods = await me.subscribe("Floods", v=1)
        sandbox.execute("Fires")
        sandbox.execute("Floods")
        await anext(floods)
        fires = await me.subscribe("Fires", v=1)
        assert (await anext(fires)).execution == 1
        await fires.close()
        again = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires")
        assert (await anext(again)).execution == 2


async def test_closing_that_is_given_up_still_closes(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        closing = asyncio.create_task(fires.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        again = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires")
        assert (await anext(again)).execution == 1


async def test_a_publication_given_up_does_not_hold_up_the_next(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        sending = asyncio.create_task(me.publish("places", [{"x": 1}]))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        assert (await me.publish("places", [{"x": 2}])).accepted == 1

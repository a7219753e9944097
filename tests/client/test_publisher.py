"""Publishing through the broker: every record is answered, whatever is lost or full on the way."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import tocsin
from tocsin.broker.events import BatchFailed
from tocsin.errors import InvalidError
from tocsin.model.messages import Refusal
from tocsin.testing.sandbox import QUICK, Sandbox


async def test_records_are_stored_and_those_refused_are_named(sandbox: Sandbox) -> None:
    sandbox.refuse = lambda record: "" if b'"x"' in record else "no x"
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        published = await me.publish("places", [{"x": 1}, {"y": 2}, b'{"x":3}', '{"x":4}', b"{"])
    assert published.accepted == 3
    assert [refusal.index for refusal in published.refused] == [1, 4]
    assert published.refused[0] == Refusal(1, "no x")
    assert sandbox.published == [b'{"x":1}', b'{"x":3}', b'{"x":4}']


async def test_what_cannot_be_taken_now_is_sent_again(sandbox: Sandbox) -> None:
    sandbox.unpublishable.extend([BatchFailed(0, "busy", "full", 0.01), BatchFailed(0, "unavailable", "gone")])
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        assert (await me.publish("places", [{"x": 1}])).accepted == 1
    assert sandbox.published == [b'{"x":1}']


async def test_a_feed_that_does_not_exist_refuses_every_record(sandbox: Sandbox) -> None:
    sandbox.unpublishable.append(BatchFailed(0, "not-found", "there is no feed placs"))
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        published = await me.publish("placs", [{"x": 1}, {"x": 2}])
    assert published.accepted == 0
    assert {refusal.reason for refusal in published.refused} == {"there is no feed placs"}


async def test_an_answer_that_is_lost_is_asked_for_again(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        sandbox.mute.update(sandbox.nodes)
        sending = asyncio.create_task(me.publish("places", [{"x": 1}]))
        await sandbox.stored.wait()
        sandbox.mute.clear()
        sandbox.cut()
        assert (await sending).accepted == 1


async def test_many_calls_travel_together_and_wait_for_room(sandbox: Sandbox) -> None:
    rules = replace(QUICK, kept_bytes=100)
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=rules) as me:
        calls = [me.publish("places", [{"x": number, "padding": "-" * 30}]) for number in range(50)]
        assert [published.accepted for published in await asyncio.gather(*calls)] == [1] * 50
    assert len(sandbox.published) == 50


async def test_nothing_to_publish_is_answered_too(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        assert (await me.publish("places", [])).accepted == 0


async def test_mistakes_are_said_before_anything_is_sent(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        with pytest.raises(InvalidError, match="list of records"):
            await me.publish("places", {"x": 1})
        with pytest.raises(InvalidError, match="record 1 cannot"):
            await me.publish("places", [{"x": 1}, {"x": object()}])
    assert sandbox.published == []

"""Connections break, brokers die and move their subscribers; the application gets each note once and in order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import tocsin
from tests.client.town import QUICK, Town
from tocsin.client.notices import Kind, Notice
from tocsin.client.subscriber import Subscriber
from tocsin.client.tray import Tray


async def until(happened: Tray[Notice], kind: Kind) -> Notice:
    async for notice in happened:
        if notice.kind is kind:
            return notice
    raise AssertionError(f"it ended without {kind}")


def listen(me: Subscriber) -> Tray[Notice]:
    happened = me.events()
    assert isinstance(happened, Tray)
    return happened


async def test_a_broken_connection_is_made_again_and_what_was_missed_comes(town: Town) -> None:
    async with tocsin.connect(town.url, await town.register("ann"), rules=QUICK) as me:
        happened = listen(me)
        fires = await me.subscribe("Fires", v=1)
        town.execute("Fires")
        assert not (await anext(fires)).recovered
        town.cut()
        await until(happened, Kind.RECONNECTING)
        town.execute("Fires", 2)
        await until(happened, Kind.CONNECTED)
        town.execute("Fires")
        notes = [await anext(fires) for _ in range(3)]
        assert [note.execution for note in notes] == [2, 3, 4]
        assert [note.recovered for note in notes][-1] is False


async def test_a_move_is_seen_only_by_who_listens(town: Town) -> None:
    async with tocsin.connect(town.url, await town.register("ann"), rules=QUICK) as me:
        happened = listen(me)
        fires = await me.subscribe("Fires", v=1)
        (home,) = town.where()
        before = (await until(happened, Kind.CONNECTED)).url
        town.execute("Fires", 3)
        await town.drain(home)
        assert (await until(happened, Kind.MOVED)).url != before
        town.execute("Fires", 3)
        notes = [await anext(fires) for _ in range(6)]
        assert [note.execution for note in notes] == [1, 2, 3, 4, 5, 6]
        assert not any(note.recovered for note in notes)


async def test_a_broker_dies_and_the_others_take_over(town: Town) -> None:
    async with tocsin.connect(town.url, await town.register("ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        town.execute("Fires", 2)
        assert (await anext(fires)).execution == 1
        (home,) = town.where()
        town.kill(home)
        town.execute("Fires", 2)
        assert [(await anext(fires)).execution for _ in range(3)] == [2, 3, 4]
        assert town.where() == [({"a", "b"} - {home}).pop()]


async def test_a_connection_that_says_nothing_any_more_is_given_up(town: Town) -> None:
    rules = replace(QUICK, ping_seconds=0.05, pong_seconds=0.05)
    async with tocsin.connect(town.url, await town.register("ann"), rules=rules) as me:
        happened = listen(me)
        fires = await me.subscribe("Fires", v=1)
        town.freeze()
        await until(happened, Kind.RECONNECTING)
        await until(happened, Kind.CONNECTED)
        town.execute("Fires")
        assert (await anext(fires)).execution == 1


async def test_what_is_asked_while_away_is_answered_when_back(town: Town) -> None:
    async with tocsin.connect(town.url, await town.register("ann"), rules=QUICK) as me:
        happened = listen(me)
        town.away = True
        town.cut()
        await until(happened, Kind.RECONNECTING)
        asked = asyncio.create_task(me.subscribe("Fires", v=1))
        sent = asyncio.create_task(me.publish("places", [{"x": 1}]))
        town.away = False
        assert (await asked).channel == "Fires"
        assert (await sent).accepted == 1


async def test_through_any_trouble_each_note_comes_once_and_in_order(town: Town) -> None:
    random = Random(7)
    async with tocsin.connect(town.url, await town.register("ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)

        async def trouble() -> None:
            for _ in range(60):
                town.execute("Fires")
                match random.randrange(4):
                    case 0:
                        town.cut()
                    case 1:
                        await town.drain(random.choice(["a", "b"]), on=random.random() < 0.5)
                await asyncio.sleep(random.uniform(0, 0.03))

        breaking = asyncio.create_task(trouble())
        assert [(await anext(fires)).execution for _ in range(60)] == list(range(1, 61))
        await breaking

"""What an application sees of being connected: entering, leaving, and what ends it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

import tocsin
from tocsin.client import register, unregister
from tocsin.client.coordinator import UnreachableError
from tocsin.client.faults import ClosedError, ReplacedError
from tocsin.client.notices import NoticeKind
from tocsin.errors import ConflictError, InvalidError, NotFoundError, TocsinError, UnauthorizedError, UnavailableError
from tocsin.testing.sandbox import QUICK, Sandbox
from tocsin.testing.wires import NOWHERE


async def test_a_subscriber_registers_connects_and_is_told(sandbox: Sandbox) -> None:
    token = await register(sandbox.url, "ann")
    async with tocsin.connect(sandbox.url, token) as me:
        floods = await me.subscribe("Emergencies", event="flood")
        sandbox.execute("Emergencies")
        note = await anext(floods)
    assert (note.channel, note.execution, note.subscription) == ("Emergencies", 1, floods.number)
    assert note.rows == [{"be": floods.number, "n": 1}]
    assert note.payload == b'[{"be":1,"n":1}]'
    assert not note.recovered


async def test_a_name_is_registered_once(sandbox: Sandbox) -> None:
    await register(sandbox.url, "ann")
    with pytest.raises(ConflictError, match="ann"):
        await register(sandbox.url, "ann")
    with pytest.raises(InvalidError):
        await register(sandbox.url, "no name at all")


async def test_what_is_found_while_no_program_runs_waits_for_the_next(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires")
        (await anext(fires)).done()
    sandbox.execute("Fires", 2)
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        sandbox.execute("Fires")
        fires = await me.subscribe("Fires", v=1)
        notes = [await anext(fires) for _ in range(3)]
    assert [(note.execution, note.recovered) for note in notes] == [(2, True), (3, True), (4, False)]


async def test_a_live_subscription_skips_what_was_found_meanwhile(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        await me.subscribe("Fires", live=True, v=1)
    sandbox.execute("Fires", 2)
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        fires = await me.subscribe("Fires", live=True, v=1)
        sandbox.execute("Fires")
        assert (await anext(fires)).execution == 3


async def test_parameters_may_have_any_name(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        sub = await me.subscribe("Fires", parameters={"live": 1, "acknowledge": 2, "not an identifier": 3}, v=4)
        assert sub.parameters == {"live": 1, "acknowledge": 2, "not an identifier": 3, "v": 4}


async def test_a_token_that_is_not_valid_ends_at_once(sandbox: Sandbox) -> None:
    with pytest.raises(UnauthorizedError, match="ask the coordinator"):
        async with tocsin.connect(sandbox.url, "forged"):
            pytest.fail("nobody is let in with a forged token")


async def test_a_place_where_nothing_listens_is_said_at_once(sandbox: Sandbox) -> None:
    await sandbox.__aexit__(None, None, None)
    with pytest.raises(UnreachableError, match="is 'tocsin coordinator' or 'tocsin up' running there"):
        async with tocsin.connect(sandbox.url, "any"):
            pytest.fail("nobody is there")


@pytest.mark.parametrize("url", ["localhost:8700", "", "http://", "ftp://localhost:8700", "http://host:port"])
def test_what_is_no_url_is_said_before_anything_is_tried(url: str) -> None:
    with pytest.raises(InvalidError, match="http://localhost:8700"):
        tocsin.connect(url, "token")


def test_a_token_that_was_forgotten_is_said_before_anything_is_tried() -> None:
    with pytest.raises(InvalidError, match="register"):
        tocsin.connect("http://localhost:8700", "")


async def test_who_connects_again_elsewhere_replaces_the_first(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as first:
        fires = await first.subscribe("Fires", v=1)
        happened = first.events()
        async with tocsin.connect(sandbox.url, token, rules=QUICK):
            with pytest.raises(ReplacedError, match="stop one of them"):
                await anext(fires)
            with pytest.raises(ReplacedError):
                await first.subscribe("Floods")
            with pytest.raises(ReplacedError):
                await first.publish("places", [])
            with pytest.raises(ReplacedError):
                [notice async for notice in happened]


async def test_a_channel_that_does_not_exist_is_said_where_it_was_asked_for(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        with pytest.raises(NotFoundError, match="no channel Nowhere"):
            await me.subscribe(NOWHERE)
        with pytest.raises(NotFoundError):
            await me.subscribe(NOWHERE)
        assert (await me.subscribe("Fires")).channel == "Fires"


async def test_what_cannot_be_written_as_json_is_no_parameter(sandbox: Sandbox) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        with pytest.raises(InvalidError, match="a parameter of Fires"):
            await me.subscribe("Fires", what=object())
        with pytest.raises(TocsinError, match="at most"):
            await me.subscribe("Fires", what="x" * QUICK.message_bytes)


async def test_it_is_used_within_its_async_with(sandbox: Sandbox) -> None:
    me = tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK)
    with pytest.raises(ClosedError, match="async with"):
        await me.subscribe("Fires")
    async with me:
        fires = await me.subscribe("Fires")
        other = await me.subscribe("Floods")
        waiting = asyncio.create_task(anext(aiter(other), None))
    assert await waiting is None
    assert [note async for note in fires] == []
    with pytest.raises(ClosedError):
        await me.subscribe("Fires")
    with pytest.raises(ClosedError):
        async with me:
            pytest.fail("entered again")


async def test_leaving_ends_what_still_waits_for_an_answer(sandbox: Sandbox) -> None:
    sandbox.mute.update(["a", "b"])
    me = tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK)
    sandbox.mute.clear()
    async with me:
        sandbox.mute.update(["a", "b"])
        calls = [asyncio.create_task(me.subscribe("Fires")), asyncio.create_task(me.publish("places", [{"x": 1}]))]
        await asyncio.sleep(0)
    for call in calls:
        with pytest.raises(ClosedError):
            await call


async def test_a_coordinator_without_a_broker_is_asked_until_there_is_one() -> None:
    async with asyncio.timeout(30), Sandbox() as sandbox:
        sandbox.kill("a")
        me = tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK)
        entering = asyncio.create_task(me.__aenter__())
        happened = me.events()
        while (await anext(happened)).kind is not NoticeKind.RECONNECTING:
            pass
        await sandbox.start("late")
        await entering
        assert (await me.subscribe("Fires")).channel == "Fires"
        await me.__aexit__(None, None, None)


async def test_a_server_that_is_no_coordinator_is_told_apart(sandbox: Sandbox) -> None:
    with pytest.raises(TocsinError, match="no call GET /elsewhere/broker"):
        async with tocsin.connect(f"{sandbox.url}/elsewhere", await sandbox.register("ann")):
            pytest.fail("there is no coordinator")
    assert issubclass(UnreachableError, UnavailableError)


async def test_whoever_unregisters_is_gone_for_good(sandbox: Sandbox) -> None:
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        await me.unregister()
        assert [note async for note in fires] == []
        with pytest.raises(ClosedError, match="unregistered"):
            await me.subscribe("Fires", v=1)
        with pytest.raises(ClosedError, match="unregistered"):
            await me.unregister()
    with pytest.raises(UnauthorizedError, match="removed"):
        async with tocsin.connect(sandbox.url, token, rules=QUICK):
            pass
    assert sandbox.subscriptions_of("ann") == []
    await unregister(sandbox.url, token)


async def test_who_comes_under_the_name_of_somebody_who_has_left_gets_nothing_of_theirs(sandbox: Sandbox) -> None:
    old = await register(sandbox.url, "ann")
    async with tocsin.connect(sandbox.url, old, rules=QUICK) as me:
        await me.subscribe("Fires", v=1)
        await me.unregister()
    sandbox.execute("Fires", 2)
    async with tocsin.connect(sandbox.url, await register(sandbox.url, "ann"), rules=QUICK) as me:
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires")
        assert (await anext(fires)).execution == 3
        await unregister(sandbox.url, old)
        sandbox.execute("Fires")
        assert (await anext(fires)).execution == 4


async def test_who_cannot_unregister_now_stays(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        monkeypatch.setattr(me._coordinator, "url", NOWHERE)
        with pytest.raises(UnavailableError):
            await me.unregister()
        fires = await me.subscribe("Fires", v=1)
        sandbox.execute("Fires")
        assert (await anext(fires)).execution == 1


async def test_a_broker_that_lets_go_before_the_coordinator_has_answered_is_no_fault(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tocsin.connect(sandbox.url, await sandbox.register("ann"), rules=QUICK) as me:
        fires, gone = await me.subscribe("Fires", v=1), asyncio.Event()
        leave, failed = me._coordinator.unregister, me._fail

        async def slowly(token: str) -> None:
            await leave(token)
            await gone.wait()

        def noted(error: Exception) -> None:
            failed(error)
            gone.set()

        assert me._driver
        monkeypatch.setattr(me._coordinator, "unregister", slowly)
        monkeypatch.setattr(me._driver, "_fail", noted)
        await me.unregister()
        assert [note async for note in fires] == []


def test_importing_the_package_loads_neither_http_nor_websockets() -> None:
    check = (
        "import sys, tocsin, tocsin.client.core.core; sys.exit('httpx' in sys.modules or 'websockets' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0

"""The JavaScript client when results are gone, a channel is dropped, or the data cluster has other data than before."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest

import tocsin
from tests.web.conftest import Open
from tocsin.testing.sandbox import QUICK, Sandbox

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium: scripts/ensure-chromium installs it")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """One broker, and a channel that was created."""
    async with Sandbox("a") as sandbox:
        sandbox.data.absent.add("Fires")
        sandbox.data.create("Fires")
        yield sandbox


async def test_a_page_is_told_where_notes_are_not_kept_any_more(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const told = heard(me, "gap");
        const seen = [];
        const onGap = ({channel, subscription, first, last}) => seen.push([channel, subscription, first, last]);
        const fires = await me.subscribe("Fires", {v: 1}, {onGap});
        for (const note of await taken(fires, 3)) seen.push(note.execution);
        await report(seen);
        await report((await told).detail.message);
    """
    token = await sandbox.register("ann")
    async with tocsin.connect(sandbox.url, token, rules=QUICK) as me:
        number = (await me.subscribe("Fires", v=1)).number
    sandbox.data.kept = 3
    sandbox.execute("Fires", 12)
    # It still had all of them in its memory.
    sandbox.kill("a")
    await sandbox.start("a")
    async with browse(script, url=sandbox.url, token=token) as browser:
        assert await browser.report() == [["Fires", number, 1, 9], 10, 11, 12]
        assert await browser.report() == "what executions 1 to 9 of Fires found is not kept any more"


async def test_what_an_older_copy_of_the_data_finds_comes_though_the_numbers_were_used_before(
    sandbox: Sandbox, browse: Open
) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const fires = await me.subscribe("Fires", {v: 1});
        await report("ready");
        await report(executions(await taken(fires, 5)));
        await report(executions(await taken(fires, 3)));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires", 3)
        copy = sandbox.data.copy()
        sandbox.execute("Fires", 2)
        assert await browser.report() == [1, 2, 3, 4, 5]
        sandbox.restart_data(copy)
        sandbox.execute("Fires", 3)
        assert await browser.report() == [4, 5, 6]


async def test_after_two_restored_copies_only_what_is_new_since_what_all_have_in_common_comes_again(
    sandbox: Sandbox, browse: Open
) -> None:
    # Nothing is acknowledged, so that the broker begins anew each time.
    script = """
        const me = await tocsin.connect(url, {token, rules: {...rules, ack: 1000}});
        const fires = await me.subscribe("Fires", {v: 1});
        const told = async (count) => report((await taken(fires, count)).map(({rows}) => [rows[0].n, rows[0].i]));
        await report("ready");
        await told(5);
        await told(2);
        await told(3);
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires", 3)
        copy = sandbox.data.copy()
        sandbox.execute("Fires", 2)
        assert await browser.report() == [[number, "creation 1"] for number in range(1, 6)]
        sandbox.restart_data()
        sandbox.execute("Fires", 2)
        assert await browser.report() == [[6, "life 2"], [7, "life 2"]]
        sandbox.restart_data(copy)
        sandbox.execute("Fires", 3)
        assert await browser.report() == [[number, "life 3"] for number in range(4, 7)]


async def test_what_was_lost_and_is_restored_does_not_come_again(sandbox: Sandbox, browse: Open) -> None:
    # Nothing is acknowledged, so that the broker begins anew each time.
    script = """
        const me = await tocsin.connect(url, {token, rules: {...rules, ack: 1000}});
        const fires = await me.subscribe("Fires", {v: 1});
        const told = async (count) => report((await taken(fires, count)).map(({rows}) => [rows[0].n, rows[0].i]));
        await report("ready");
        await told(3);
        await told(2);
        await told(2);
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires", 3)
        assert await browser.report() == [[number, "creation 1"] for number in range(1, 4)]
        copy = sandbox.data.copy()
        sandbox.data.lose()
        sandbox.data.create("Fires")
        sandbox.restart_data()
        sandbox.execute("Fires", 2)
        assert [number for number, _ in await browser.report()] == [1, 2]
        sandbox.restart_data(copy)
        sandbox.execute("Fires", 2)
        assert [number for number, _ in await browser.report()] == [4, 5]


async def test_a_subscription_goes_on_under_another_number_when_all_data_were_lost(
    sandbox: Sandbox, browse: Open
) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const fires = await me.subscribe("Fires", {v: 1});
        await report(fires.number);
        await report(executions(await taken(fires, 2)));
        const [note] = await taken(fires, 1);
        await report([note.execution, note.subscription, fires.number]);
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        before = await browser.report()
        sandbox.execute("Fires", 2)
        assert await browser.report() == [1, 2]
        sandbox.data.lose()
        sandbox.data.create("Fires")
        sandbox.restart_data()
        sandbox.execute("Fires")
        now = sandbox.data.be("Fires", {"v": 1})
        assert now != before
        assert await browser.report() == [1, now, now]


async def test_a_dropped_channel_ends_the_loop_with_the_reason_and_the_next_of_its_name_is_another(
    sandbox: Sandbox, browse: Open
) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const fires = await me.subscribe("Fires", {v: 1});
        await report("ready");
        await taken(fires, 2).catch((error) => report([error.code, error.message]));
        await me.subscribe("Fires", {v: 1}).catch((error) => report(error.code));
        await asked();
        const again = await me.subscribe("Fires", {v: 1});
        await report("again");
        await report(executions(await taken(again, 1)));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires")
        sandbox.drop("Fires")
        code, message = await browser.report()
        assert (code, "Fires was dropped" in message) == ("gone", True)
        assert await browser.report() == "gone"
        sandbox.data.create("Fires")
        browser.ask()
        assert await browser.report() == "again"
        sandbox.execute("Fires")
        assert await browser.report() == [1]


async def test_what_was_given_up_without_a_connection_and_has_another_number_by_then_is_given_up(
    sandbox: Sandbox, browse: Open
) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const fires = await me.subscribe("Fires", {v: 1});
        const lost = heard(me, "reconnecting");
        await report("ready");
        await lost;
        const closed = fires.close();
        await report("closing");
        await closed;
        await report("closed");
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        ((_, before),) = sandbox.subscriptions_of("ann")
        sandbox.calls.away = True
        sandbox.kill("a")
        assert await browser.report() == "closing"
        sandbox.data.lose()
        sandbox.data.create("Fires")
        # The first learns the number, and the second does not know that there was another.
        await sandbox.start("a")
        sandbox.kill("a")
        await sandbox.start("a")
        assert sandbox.subscriptions_of("ann") == [("Fires", before + 1)]
        sandbox.calls.away = False
        assert await browser.report() == "closed"
        assert sandbox.subscriptions_of("ann") == []

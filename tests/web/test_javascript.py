"""The JavaScript client in a real browser, against real brokers' cores: the same promises as in Python."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from tests.web.conftest import Open
from tocsin.broker.events import BatchFailed
from tocsin.model.terms import Terms
from tocsin.testing.sandbox import Sandbox
from tocsin.testing.wires import NOWHERE

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium: scripts/ensure-chromium installs it")


async def test_a_page_registers_subscribes_and_is_told(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const token = await tocsin.register(url, "ann");
        const me = await tocsin.connect(url, {token, rules, location: [1, 2]});
        const fires = await me.subscribe("Fires", {event: "flood"});
        await report("ready");
        const [note] = await taken(fires, 1);
        await report([note.channel, note.execution, note.rows, note.recovered, note.subscription === fires.number]);
    """
    async with browse(script, url=sandbox.url) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires")
        assert await browser.report() == ["Fires", 1, [{"be": 1, "n": 1}], False, True]


async def test_a_page_unregisters_for_good(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const token = await tocsin.register(url, "ann");
        const me = await tocsin.connect(url, {token, rules});
        const fires = await me.subscribe("Fires", {event: "flood"});
        await me.unregister();
        await tocsin.unregister(url, token);
        await report([(await fires.next()).done, await tocsin.connect(url, {token, rules}).catch(({code}) => code)]);
    """
    async with browse(script, url=sandbox.url) as browser:
        assert await browser.report() == [True, "unauthorized"]
    assert sandbox.subscriptions_of("ann") == []


async def test_a_broken_connection_is_made_again_and_nothing_comes_twice(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const fires = await me.subscribe("Fires", {v: 1});
        await report("ready");
        await taken(fires, 2);
        const again = heard(me, "reconnecting");
        await report("two");
        await again;
        await report("lost");
        const notes = await taken(fires, 3);
        await report(executions(notes));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires", 2)
        assert await browser.report() == "two"
        sandbox.cut()
        assert await browser.report() == "lost"
        sandbox.execute("Fires", 3)
        assert await browser.report() == [3, 4, 5]


async def test_a_move_loses_nothing(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const fires = await me.subscribe("Fires", {v: 1});
        const moved = heard(me, "moved");
        await report("ready");
        await moved;
        await report("moved");
        await report((await taken(fires, 6)).map((note) => [note.execution, note.recovered]));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        (home,) = sandbox.where()
        sandbox.execute("Fires", 3)
        await sandbox.drain(home)
        assert await browser.report() == "moved"
        sandbox.execute("Fires", 3)
        assert await browser.report() == [[execution, False] for execution in range(1, 7)]
        assert sandbox.where() == [({"a", "b"} - {home}).pop()]


async def test_what_was_taken_does_not_come_to_the_next_page_and_what_was_not_does(
    sandbox: Sandbox, browse: Open
) -> None:
    script = """
        let me = await tocsin.connect(url, {token, rules});
        await me.subscribe("Fires", {v: 1}).then(async (fires) => {
            await report("ready");
            await taken(fires, 2);
        });
        me.close();
        await report("closed");
        me = await tocsin.connect(url, {token, rules});
        const notes = await taken(await me.subscribe("Fires", {v: 1}), 3);
        await report(notes.map((note) => [note.execution, note.recovered]));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires", 3)
        assert await browser.report() == "closed"
        sandbox.execute("Fires")
        assert await browser.report() == [[2, True], [3, True], [4, True]]


async def test_a_page_that_takes_nothing_gets_the_rest_later(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules: {...rules, backlog: 5}});
        const [fires, floods] = [await me.subscribe("Fires", {v: 1}), await me.subscribe("Floods", {v: 1})];
        await report("ready");
        await taken(floods, 1);
        await report(executions(await taken(fires, 40)));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires", 40)
        sandbox.execute("Floods")
        assert await browser.report() == list(range(1, 41))


async def test_a_page_that_takes_nothing_while_it_moves_gets_the_rest_later(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules: {...rules, backlog: 5}});
        const [fires, floods] = [await me.subscribe("Fires", {v: 1}), await me.subscribe("Floods", {v: 1})];
        const moved = heard(me, "moved");
        await report("ready");
        await taken(floods, 1);
        await report("full");
        await moved;
        await report(executions(await taken(fires, 40)));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        (home,) = sandbox.where()
        sandbox.execute("Fires", 20)
        sandbox.execute("Floods")
        assert await browser.report() == "full"
        await sandbox.drain(home)
        sandbox.execute("Fires", 20)
        assert await browser.report() == list(range(1, 41))


async def test_two_readers_of_the_same_and_the_last_to_close_unsubscribes(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const [one, two] = [await me.subscribe("Fires", {v: 1}), await me.subscribe("Fires", {v: 1})];
        await report("ready");
        await report([executions(await taken(one, 2)), executions(await taken(two, 2))]);
        await one.close();
        await two.close();
        const again = await me.subscribe("Fires", {v: 1});
        await report("again");
        await report([await taken(one, 1), executions(await taken(again, 1))]);
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.execute("Fires", 2)
        assert await browser.report() == [[1, 2], [1, 2]]
        assert await browser.report() == "again"
        sandbox.execute("Fires")
        assert await browser.report() == [[], [3]]


@pytest.mark.parametrize("whole", ["{v: 1}", "{v: 1, me: 'ann'}"])
async def test_what_one_reader_wants_live_another_gets_with_all_that_was_missed(
    sandbox: Sandbox, browse: Open, whole: str
) -> None:
    sandbox.data.terms["Fires"] = Terms(bound=("me",))
    script = f"""
        const me = await tocsin.connect(url, {{token, rules}});
        const one = await me.subscribe("Fires", {whole});
        const two = await me.subscribe("fires", {{v: 1}}, {{live: true}});
        await me.subscribe("Floods");
        await report("ready");
        await report([executions(await taken(one, 3)), executions(await taken(two, 3))]);
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        sandbox.cut()
        sandbox.execute("Fires", 3)
        assert await browser.report() == [[1, 2, 3], [1, 2, 3]]


async def test_records_are_published_and_sent_again_where_that_helps(sandbox: Sandbox, browse: Open) -> None:
    sandbox.refuse = lambda record: "" if b'"x"' in record else "no x"
    sandbox.unpublishable.append(BatchFailed(0, "busy", "full", 0.01))
    script = """
        const me = await tocsin.connect(url, {token, rules});
        await report(await me.publish("places", [{x: 1}, {y: 2}, {x: 9007199254740993n}]));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == {"accepted": 2, "refused": [{"index": 1, "reason": "no x"}], "unlisted": 0}
    assert sandbox.published == [b'{"x":1}', b'{"x":9007199254740993}']


async def test_what_is_wrong_is_said_where_it_was_asked(sandbox: Sandbox, browse: Open) -> None:
    script = """
        await tocsin.connect(url, {token: "forged", rules}).catch((error) => report([error.code, error.message]));
        const me = await tocsin.connect(url, {token, rules});
        await me.subscribe(nowhere).catch((error) => report([error.code, error.message]));
        await me.publish("places", {x: 1}).catch((error) => report([error.code, error.message]));
        const fires = await me.subscribe("Fires");
        const other = await tocsin.connect(url, {token, rules});
        await taken(fires, 1).catch((error) => report(error.code));
        await me.subscribe("Fires").catch((error) => report(error.code));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann"), nowhere=NOWHERE) as browser:
        code, _ = await browser.report()
        assert code == "unauthorized"
        assert await browser.report() == ["not-found", "there is no channel Nowhere"]
        one = "publish takes an array of records; write [record] for a single one"
        assert await browser.report() == ["invalid", one]
        assert await browser.report() == "replaced"
        assert await browser.report() == "replaced"


async def test_through_cuts_and_moves_each_note_comes_once_and_in_order(sandbox: Sandbox, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {token, rules});
        const fires = await me.subscribe("Fires", {v: 1});
        await report("ready");
        await report(executions(await taken(fires, 30)));
    """
    async with browse(script, url=sandbox.url, token=await sandbox.register("ann")) as browser:
        assert await browser.report() == "ready"
        for turn in range(30):
            sandbox.execute("Fires")
            if turn % 5 == 2:
                sandbox.cut()
            if turn % 10 == 7:
                await sandbox.drain("a", on=turn < 10)
                await sandbox.drain("b", on=turn >= 10)
            await asyncio.sleep(0.02)
        assert await browser.report() == list(range(1, 31))

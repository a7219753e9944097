"""Content-based subscriptions in a real browser, at real heads and edges: the same promises as in Python."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

import tocsin
from tests.overlay.server.running import edge, head, talk
from tests.pages import ROOT, blocks
from tests.web.conftest import Open
from tests.web.fakes import FakeEdge, FakeHead
from tocsin.overlay.dialogue import HeadCursor, Introduce, Publish

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium: scripts/ensure-chromium installs it")

HIGHS = (
    "const highs = async (subscription, count) => (await taken(subscription, count)).map((note) => note.content.high);"
)


async def publish(url: str, *highs: float, client_token: str = "") -> None:
    async with tocsin.connect(url, name="ticker", client_token=client_token) as ticker:
        for high in highs:
            await ticker.publish({"symbol": "YHOO", "high": high})


async def test_a_page_subscribes_by_content_and_goes_on_with_its_cursors(tmp_path: Path, browse: Open) -> None:
    script = f"""
        {HIGHS}
        const me = await tocsin.connect(url);
        const quotes = await me.subscribe("symbol = 'YHOO' and high > 40");
        await report("ready");
        const [first] = await taken(quotes, 1);
        await report([first.publisher, first.sequence, first.head, first.content]);
        await report(await highs(quotes, 1));
        quotes.done();
        quotes.close();
        await report((await quotes.next()).done);
        await asked();
        const again = await (await tocsin.connect([nowhere, url])).subscribe(quotes.where, {{cursors: quotes.cursors}});
        await report(await highs(again, 2));
    """
    nowhere = "ws://127.0.0.1:1"
    async with head(tmp_path) as root, edge(root) as url, browse(script, url=url, nowhere=nowhere) as browser:
        assert await browser.report() == "ready"
        await publish(root, 39, 41, 50)
        assert await browser.report() == ["ticker", 2, "h", {"symbol": "YHOO", "high": 41}]
        assert await browser.report() == [50]
        assert await browser.report() is True
        await publish(root, 60, 30, 70)
        browser.ask()
        assert await browser.report() == [60, 70]


async def test_when_an_edge_dies_a_page_goes_to_the_next_and_misses_nothing(tmp_path: Path, browse: Open) -> None:
    script = f"""
        {HIGHS}
        const me = await tocsin.connect(urls, {{rules: {{firstWait: 0.02}}}});
        const quotes = await me.subscribe("high > 0");
        await report(quotes.edge);
        await report(await highs(quotes, 1));
        await report(await highs(quotes, 3));
    """
    async with head(tmp_path) as root, edge(root, "b") as second:
        async with edge(root, "a") as first:
            browser = browse(script, urls=[first, second])
            await browser.__aenter__()
            assert await browser.report() == first
            await publish(root, 1)
            assert await browser.report() == [1]
        await publish(root, 2, 3, 4)
        assert await browser.report() == [2, 3, 4]
        await browser.__aexit__(None, None, None)


async def test_what_is_not_kept_any_more_is_told_in_its_place(tmp_path: Path, browse: Open) -> None:
    script = f"""
        {HIGHS}
        const gaps = [];
        const me = await tocsin.connect(url);
        const cursors = {{h: [0]}};
        const quotes = await me.subscribe("high > 0", {{cursors, onGap: (gap) => gaps.push(gap)}});
        await report([await highs(quotes, 2), gaps]);
    """
    async with head(tmp_path, replay_publications=2) as root:
        await publish(root, 1, 2, 3, 4, 5)
    async with head(tmp_path, replay_publications=2) as root, edge(root) as url, browse(script, url=url) as browser:
        assert await browser.report() == [[4, 5], [{"head": "h", "first": 1, "last": 3}]]


async def test_a_page_shows_the_clients_token(tmp_path: Path, browse: Open) -> None:
    token = "secret/+= ~?"
    script = f"""
        {HIGHS}
        const refused = await tocsin.connect(url);
        await report(await refused.subscribe("high > 0").catch((error) => error.code));
        refused.close();
        const me = await tocsin.connect(url, {{token}});
        const quotes = await me.subscribe("high > 0");
        await report("ready");
        await report(await highs(quotes, 1));
    """
    async with (
        head(tmp_path, client_token=token) as root,
        edge(root, client_token=token) as url,
        browse(script, url=url, token=token) as browser,
    ):
        assert await browser.report() == "unavailable"
        assert await browser.report() == "ready"
        async with talk(root, token) as ticker:
            await ticker.say(Introduce("p"), Publish(1, {"high": 7}))
            await ticker.hear()
        assert await browser.report() == [7]


async def test_a_token_that_expires_ends_a_subscription(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {rules});
        const quotes = await me.subscribe("high > 0");
        await report((await taken(quotes, 1)).map((note) => note.offset));
        await report(await quotes.next().catch((error) => [error.code, error.message]));
    """
    async with FakeEdge() as old, browse(script, url=old.url) as browser:
        await old.subscribed(cursors={})
        await old.say("Began", head="h", offset=0, incarnation="i", known="", shared=0)
        await old.note(1)
        assert await browser.report() == [1]
        await old.close(4401)
        code, message = await browser.report()
        assert code == "unauthorized"
        assert message == f"the token for {old.url} has expired; connect again with another"


async def test_a_token_that_expires_ends_a_publisher(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {name: "page", rules});
        const waiting = me.publish({high: 1}).catch((error) => error.code);
        await report(await waiting);
        await report(await me.publish({high: 2}).catch((error) => error.code));
    """
    async with FakeHead() as peer, browse(script, url=peer.url) as browser:
        await peer.introduced("")
        await peer.say("Known", sequence=0, incarnation="i", continued=False)
        assert await peer.published(1) == [(1, 1)]
        await peer.close(4401)
        assert await browser.report() == "unauthorized"
        assert await browser.report() == "unauthorized"


async def test_mistakes_are_told(tmp_path: Path, browse: Open) -> None:
    script = """
        const told = (subscribing) => subscribing.catch((error) => [error.code, error.message]);
        const me = await tocsin.connect(url, {rules: {firstWait: 0.02}});
        await report(await told(me.subscribe("high >")));
        await report((await told((await tocsin.connect("ws://127.0.0.1:1")).subscribe("high > 1")))[0]);
    """
    async with head(tmp_path) as root, edge(root) as url, browse(script, url=url) as browser:
        code, message = await browser.report()
        assert (code, message.startswith("line 1, column 7: a value is expected")) == ("invalid", True)
        assert await browser.report() == "unavailable"


async def test_a_page_moves_to_another_edge_and_drops_what_both_send(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url);
        const quotes = await me.subscribe("high > 0");
        await report((await taken(quotes, 4)).map((note) => note.offset));
        await report(quotes.cursors);
    """
    async with FakeEdge() as old, FakeEdge() as new, browse(script, url=old.url) as browser:
        await old.subscribed(cursors={})
        await old.say("Began", head="h", offset=0, incarnation="i", known="", shared=0)
        await old.note(1)
        await old.say("Move", edge=new.url, session="s", migrating=3)
        coming = await new.subscribed(cursors={"h": [1, "i"]})
        assert (coming["session"], coming["migrating"]) == ("s", 3)
        await old.note(2)
        await new.say("Began", head="h", offset=1, incarnation="i", known="i", shared=1)
        await new.note(2)
        await new.note(3)
        await old.note(3)
        await old.say("Settle", session="s", seconds=0)
        assert (await old.heard())["type"] == "Unsubscribe"
        await new.note(4)
        assert await browser.report() == [1, 2, 3, 4]
        assert await browser.report() == {"h": [3, "i"]}


async def test_a_page_that_may_leave_before_it_hears_from_the_other_edge_goes_when_it_does(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url);
        const quotes = await me.subscribe("high > 0");
        await report((await taken(quotes, 2)).map((note) => note.offset));
    """
    async with FakeEdge() as old, FakeEdge() as new, browse(script, url=old.url) as browser:
        await old.subscribed(cursors={})
        await old.say("Began", head="h", offset=0, incarnation="i", known="", shared=0)
        await old.say("Move", edge=new.url, session="s", migrating=1)
        await new.subscribed(cursors={"h": [0, "i"]})
        await old.say("Settle", session="s", seconds=0)
        await old.note(1)
        await new.say("Began", head="h", offset=0, incarnation="i", known="i", shared=0)
        assert (await old.heard())["type"] == "Unsubscribe"
        # The page may have left before the first one came.
        await new.note(1)
        await new.note(2)
        assert await browser.report() == [1, 2]


async def test_an_edge_that_begins_too_late_is_asked_again(browse: Open) -> None:
    script = """
        const gaps = [];
        const me = await tocsin.connect(url);
        const quotes = await me.subscribe("high > 0", {cursors: {h: [5, "i"]}, onGap: (gap) => gaps.push(gap)});
        await report([(await taken(quotes, 2)).map((note) => note.offset), gaps]);
    """
    async with FakeEdge() as old, browse(script, url=old.url) as browser:
        await old.subscribed(cursors={"h": [5, "i"]})
        await old.say("Began", head="h", offset=9, incarnation="i", known="", shared=0)
        await old.note(10)
        await old.subscribed(cursors={"h": [5, "i"]})
        await old.say("Began", head="h", offset=5, incarnation="i", known="i", shared=5)
        await old.note(6)
        # The head has lost its log since: what is numbered anew is not taken for what was had.
        await old.say("Began", head="h", offset=0, incarnation="j", known="i", shared=-1)
        await old.note(1)
        assert await browser.report() == [[6, 1], [{"head": "h", "first": 7, "last": None}]]


async def test_an_edge_that_talks_nonsense_is_left_for_another(browse: Open) -> None:
    script = """
        const me = await tocsin.connect([url, other], {rules: {firstWait: 0.02}});
        const quotes = await me.subscribe("high > 0");
        await report((await taken(quotes, 2)).map((note) => note.offset));
    """
    async with FakeEdge() as bad, FakeEdge() as good, browse(script, url=bad.url, other=good.url) as browser:
        await bad.subscribed(cursors={})
        await bad.say("Began", head="h", offset=0, incarnation="i", known="", shared=0)
        await bad.note(1)
        await bad.say_nonsense()
        await good.subscribed(cursors={"h": [1, "i"]})
        await good.say("Began", head="h", offset=1, incarnation="i", known="i", shared=1)
        await good.note(2)
        assert await browser.report() == [1, 2]


async def test_a_page_that_is_slow_leaves_and_comes_back_for_the_rest(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {rules: {backlog: 3}});
        const quotes = await me.subscribe("high > 0", {cursors: {h: [0, "i"]}});
        await report("subscribed");
        await asked();
        await report((await taken(quotes, 4)).map((note) => note.offset));
    """
    async with FakeEdge() as old, browse(script, url=old.url) as browser:
        await old.subscribed(cursors={"h": [0, "i"]})
        await old.say("Began", head="h", offset=0, incarnation="i", known="i", shared=0)
        assert await browser.report() == "subscribed"
        for offset in (1, 2, 3):
            await old.note(offset)
        await old.gone()
        browser.ask()
        await old.subscribed(cursors={"h": [3, "i"]})
        await old.say("Began", head="h", offset=3, incarnation="i", known="i", shared=3)
        await old.note(4)
        assert await browser.report() == [1, 2, 3, 4]


async def test_a_page_publishes_to_a_head(tmp_path: Path, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {name: "page", rules});
        await Promise.all([1, 2, 3].map((high) => me.publish({symbol: "YHOO", high, halted: false, volume: null})));
        await report("stored");
        await asked();
        await me.publish({high: 1e20, text: "\\u00fc\\ud834\\udd1e"});
        me.close();
        await report(await me.publish({high: 5}).catch((error) => error.code));
    """
    async with (
        head(tmp_path) as root,
        edge(root) as url,
        browse(script, url=root) as browser,
        tocsin.connect(url) as reader,
    ):
        notes = await reader.subscribe("high > 0", cursors={"h": HeadCursor(0)})
        assert await browser.report() == "stored"
        browser.ask()
        for number in (1, 2, 3):
            note = await anext(notes)
            assert (note.publisher, note.sequence) == ("page", number)
            assert note.content == {"symbol": "YHOO", "high": number, "halted": False}
        note = await anext(notes)
        assert (note.sequence, note.content) == (4, {"high": 1e20, "text": "ü𝄞"})
        assert await browser.report() == "unavailable"


async def test_what_is_not_stored_when_a_head_dies_is_sent_again_once(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {name: "page", rules});
        await report(await Promise.all([1, 2, 3].map((high) => me.publish({high}).then(() => high))));
        await me.publish({high: 4});
        await report("stored");
    """
    async with FakeHead() as peer, browse(script, url=peer.url) as browser:
        await peer.introduced("")
        await peer.say("Known", sequence=7, incarnation="i", continued=False)
        assert await peer.published(3) == [(8, 1), (9, 2), (10, 3)]
        await peer.say("Stored", sequence=8)
        await peer.end()
        # It has stored one more than it said: the rest goes on from there, under the same numbers.
        await peer.introduced("i")
        await peer.say("Known", sequence=9, incarnation="j", continued=True)
        assert await peer.published(1) == [(10, 3)]
        await peer.say("Stored", sequence=10)
        assert await browser.report() == [1, 2, 3]
        assert await peer.published(1) == [(11, 4)]
        # Its disk is lost: what waits is numbered anew, whatever numbers it knows of others.
        await peer.end()
        await peer.introduced("j")
        await peer.say("Known", sequence=20, incarnation="k", continued=False)
        assert await peer.published(1) == [(21, 4)]
        await peer.say("Stored", sequence=21)
        assert await browser.report() == "stored"


async def test_a_page_sends_no_more_than_a_thousand_that_are_not_stored(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {name: "page", rules});
        const first = Array.from({length: 1002}, (_, high) => me.publish({high}).catch(() => {}))[0];
        await first;
        await report("stored");
        await asked();
        me.close();
    """
    async with FakeHead() as peer, browse(script, url=peer.url) as browser:
        await peer.introduced("")
        await peer.say("Known", sequence=0, incarnation="i", continued=False)
        assert (await peer.published(1000))[-1] == (1000, 999)
        await peer.say("Stored", sequence=1)
        assert await peer.published(1) == [(1001, 1000)]
        assert await browser.report() == "stored"
        browser.ask()
        assert await peer.left() == []


async def test_a_broker_that_does_not_answer_is_given_up(browse: Open) -> None:
    script = """
        const told = (promise) => promise.then(() => "done", (error) => error.code);
        const patience = {rules: {...rules, open: 0.1}};
        await report(await told((await tocsin.connect(silent, patience)).publish({high: 1})));
        await report(await told((await tocsin.connect(silent, patience)).subscribe("high > 0")));
    """
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with browse(script, silent=f"ws://127.0.0.1:{silent.getsockname()[1]}") as browser:
            assert [await browser.report(), await browser.report()] == ["unavailable", "unavailable"]


async def test_an_edge_that_takes_no_message_so_large_is_not_asked_again(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {rules});
        await report(await me.subscribe("high > 0").catch((error) => [error.code, error.message]));
    """
    async with FakeEdge() as edge, browse(script, url=edge.url) as browser:
        await edge.subscribed(cursors={})
        await edge.close(1009)
        told = f"{edge.url} takes no message as large as one that was sent"
        assert await browser.report() == ["too-large", told]


async def test_a_pages_next_number_follows_the_highest_that_its_head_knows(browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {name: "page", rules});
        for (const high of [1, 2]) await me.publish({high});
        await report("stored");
    """
    async with FakeHead() as peer, browse(script, url=peer.url) as browser:
        await peer.introduced("")
        await peer.say("Known", sequence=49, incarnation="i", continued=False)
        assert await peer.published(1) == [(50, 1)]
        await peer.end()
        await peer.introduced("i")
        await peer.say("Known", sequence=51, incarnation="i", continued=True)
        assert await peer.published(1) == [(52, 2)]
        await peer.say("Stored", sequence=52)
        assert await browser.report() == "stored"


async def test_a_page_goes_on_when_its_head_is_back(tmp_path: Path, browse: Open) -> None:
    script = """
        const me = await tocsin.connect(url, {name: "page", rules});
        await me.publish({high: 1});
        await report("stored");
        await asked();
        const stored = me.publish({high: 2});
        await report("published");
        await report(await stored.then(() => "stored"));
    """
    async with head(tmp_path) as root:
        port = int(root.rpartition(":")[2])
        browser = browse(script, url=root)
        await browser.__aenter__()
        assert await browser.report() == "stored"
    browser.ask()
    assert await browser.report() == "published"
    async with head(tmp_path, port=port) as root, edge(root) as url, tocsin.connect(url) as reader:
        notes = await reader.subscribe("high > 0", cursors={"h": HeadCursor(0)})
        assert await browser.report() == "stored"
        assert [((note := await anext(notes)).sequence, note.content) for _ in range(2)] == [
            (1, {"high": 1}),
            (2, {"high": 2}),
        ]
    await browser.__aexit__(None, None, None)


async def test_what_cannot_be_a_publication_is_told_and_ends_nothing(tmp_path: Path, browse: Open) -> None:
    script = """
        const told = (promise) => promise.then(() => "stored", (error) => error.code + ": " + error.message);
        const me = await tocsin.connect(url, {rules});
        const many = Object.fromEntries(Array.from({length: 65}, (_, at) => [`a${at}`, 1]));
        const wrong = [[1], null, 7, many, {high: NaN}, {high: [1]}, {high: 1n}, {"a`b": 1}, {"": 1}, {"a\\u0000": 1},
          {["x".repeat(129)]: 1}, {text: "x".repeat(1025)}, {text: "\\ud800"}];
        for (const content of wrong) await report(await told(me.publish(content)));
        await report(await told(me.publish({high: 1})));
        const large = Object.fromEntries(Array.from({length: 64}, (_, at) => [`a${at}`, "x".repeat(1024)]));
        await report(await told(me.publish(large)));
        for (const url of [edge, "ws://127.0.0.1:1"]) {
          await report(await told((await tocsin.connect(url, {rules})).publish({high: 1})));
        }
    """
    async with head(tmp_path) as root, edge(root) as other, browse(script, url=root, edge=other) as browser:
        for _ in range(13):
            assert (await browser.report()).startswith("invalid: ")
        assert await browser.report() == "stored"
        assert (await browser.report()).startswith("too-large: ")
        assert (await browser.report()).startswith("invalid: e is an edge, which serves subscribers")
        assert (await browser.report()).startswith("unavailable: ")


async def test_the_examples_of_the_page_run(tmp_path: Path, browse: Open) -> None:
    subscribe, publish = (
        text.replace('import {connect} from "./tocsin.js";', "const {connect} = tocsin;")
        for text in blocks(ROOT / "docs" / "content.md", "javascript")
    )
    async with head(tmp_path) as root, edge(root, "a") as first, edge(root, "b") as second:
        script = subscribe.replace("ws://127.0.0.1:8711", first).replace("ws://127.0.0.1:8712", second)
        script = script.replace("for await", f"{{{publish.replace('ws://127.0.0.1:8710', root)}}} for await")
        async with browse(f"console.log = (...words) => report(words);\n{script}") as browser:
            expected = {"symbol": "YHOO", "high": 41.5, "halted": False}
            assert await browser.report() == ["ticker", 1, expected]

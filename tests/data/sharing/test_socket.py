"""What a node may do on its socket, and what becomes of who does something else: it hurts nobody but itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tests.data.server.running import running
from tests.data.sharing.memory import SLICES, MemoryFeed, node_channel
from tests.data.sharing.test_sharing import NODES, Site, begun, working
from tests.waiting import until_async
from tocsin.data.server import sockets
from tocsin.data.server.nodes import MESSAGE_BYTES, MOST_WAITING, SpeakingRate
from tocsin.settings import Settings


@pytest.fixture
async def site(settings: Settings) -> AsyncIterator[Site]:
    async with begun(settings, MemoryFeed(), replace(NODES, local=False)) as site:
        yield site


@asynccontextmanager
async def dialled(url: str, node: str = "n1", token: str | None = "node-n1") -> AsyncIterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    target = f"{url.replace('http', 'ws')}/nodes?node={node}"
    async with connect(target, additional_headers=headers, proxy=None, max_size=None) as socket:
        yield socket


async def received(socket: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await socket.recv())
    return message


async def begin(socket: ClientConnection) -> str:
    """The incarnation of the feed, as a node is told of it."""
    assert await received(socket) == {"type": "welcome", "node": "n1", "feeds": ["reports"]}
    begun = await received(socket)
    assert (begun["type"], begun["shared"]["feed"]["name"]) == ("feed", "reports")
    return str(begun["incarnation"])


def said(incarnation: str, **message: object) -> str:
    return json.dumps({"type": "said", "feed": "reports", "incarnation": incarnation, "message": message})


def hello(incarnation: str, node: str = "n1", **more: object) -> str:
    return said(incarnation, **{"type": "hello", "node": node, "capacity": 1.0, "holding": {}, **more})


async def closed(socket: ClientConnection) -> tuple[int | None, str]:
    """The code with which the server closes, and why."""
    last = ""
    with suppress(ConnectionClosed):
        while True:
            last = str(await asyncio.wait_for(socket.recv(), 60))
    assert '"type":"error"' in last
    return socket.close_code, json.loads(last)["message"]


async def test_a_node_that_says_hello_is_given_slices(site: Site) -> None:
    async with dialled(site.url) as socket:
        incarnation = await begin(socket)
        await socket.send(hello(incarnation))
        welcome = await received(socket)
        assert (welcome["incarnation"], welcome["message"]["type"]) == (incarnation, "welcome")
        added = await received(socket)
        assert [grant["slice"] for grant in added["message"]["grants"]] == list(range(SLICES))


@pytest.mark.parametrize(
    ("node", "token", "status"),
    [
        ("n1", None, 401),
        ("n1", "nobody", 401),
        ("n1", "publisher", 403),
        ("n1", "broker", 403),
        ("n1", "node-n2", 403),
        ("data", "admin", 403),
        ("", "node-n1", 400),
        ("no%20name", "node-n1", 400),
    ],
)
async def test_only_who_has_a_nodes_token_gets_in(site: Site, node: str, token: str | None, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with dialled(site.url, node, token):
            pass
    assert refused.value.response.status_code == status


async def test_where_slices_are_not_shared_nobody_gets_in(settings: Settings) -> None:
    async with running(MemoryCluster(), settings) as (url, _):
        with pytest.raises(InvalidStatus) as refused:
            async with dialled(url):
                pass
    assert refused.value.response.status_code == 409
    assert b"nodes.share = true" in (refused.value.response.body or b"")


async def test_a_revoked_token_ends_the_connection(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "WATCH_SECONDS", 0.01)
    async with dialled(site.url) as socket:
        await begin(socket)
        site.tokens.revoked.add("node-n1")
        code, _ = await closed(socket)
        assert code == 4401


PART = {"slice": 0, "epoch": [1, 1], "begin": 0, "end": 1, "records": 1}
REPORT = {"type": "report", "cpu": 0.1, "memory": 0.1, "rows": 1.0, "batch_seconds": 0.1, "slices": []}
NONSENSE = [
    "",
    "not JSON",
    "[]",
    "[" * 100_000,
    '{"type":"said","feed":"reports","incarnation":"x","message":{"type":"dance"}}',
    '{"type":"said","feed":"reports","incarnation":"x","message":{"type":"leave","x":' + "[" * 100_000,
    '{"type":"shared"}',
    '{"type":"declined","feed":"reports","incarnation":"x","reason":"' + "x" * 1001 + '"}',
]
SENSELESS: list[dict[str, object]] = [
    {"type": "hello", "node": "n1", "capacity": -1.0, "holding": {}},
    {"type": "hello", "node": "n1", "capacity": 1e300, "holding": {}},
    {"type": "hello", "node": "n1", "capacity": 1.0, "holding": {"99": [1, 1]}},
    {"type": "hello", "node": "n1", "capacity": 1.0, "holding": {"-1": [1, 1]}},
    {"type": "hello", "node": "n1", "capacity": 1.0, "holding": {str(10**300): [1, 1]}},
    {**REPORT, "cpu": -5},
    {**REPORT, "slices": [{"slice": 0, "rate": 10**400, "backlog": 0}]},
    {**REPORT, "slices": [{"slice": 0, "rate": 1, "backlog": 0}] * (SLICES + 1)},
    {"type": "commit", "batch": 1, "parts": [PART] * (SLICES + 1), "files": []},
    {"type": "commit", "batch": 1, "parts": [{**PART, "slice": SLICES}], "files": []},
    {"type": "commit", "batch": 1, "parts": [{**PART, "end": -3}], "files": []},
    {"type": "commit", "batch": 1, "parts": [{**PART, "end": 10**9}], "files": []},
    {"type": "commit", "batch": 1, "parts": [], "files": ["x"] * 5000},
    {"type": "commit", "batch": 1, "parts": [], "files": ["x" * 5000]},
    {"type": "commit", "batch": 1, "parts": [], "files": ["../../etc/passwd"]},
    {"type": "declined", "slices": {}, "reason": "x" * 10_000},
    {"type": "declined", "slices": {"77": [1, 1]}, "reason": ""},
]


@pytest.mark.parametrize("text", NONSENSE, ids=range(len(NONSENSE)))
async def test_who_talks_nonsense_is_told_and_cut_off(site: Site, text: str) -> None:
    async with dialled(site.url) as socket:
        await begin(socket)
        await socket.send(text)
        code, why = await closed(socket)
        assert code == 4400
        assert why


async def test_what_no_node_can_mean_costs_who_says_it_its_connection_and_nobody_else(site: Site) -> None:
    async with working(site, "n2"):
        await site.until_owned("n2")
        site.feed.publish(20)
        for message in SENSELESS:
            async with dialled(site.url) as socket:
                incarnation = await begin(socket)
                if message["type"] != "hello":
                    await socket.send(hello(incarnation))
                await socket.send(said(incarnation, **message))
                code, why = await closed(socket)
                assert (code, bool(why)) == (4400, True), message
        await site.until_stored()
        assert site.workers["n2"].link.is_up
        await site.until_owned("n2")


async def test_a_node_cannot_speak_as_another(site: Site) -> None:
    async with working(site, "n2"), dialled(site.url) as socket:
        await site.until_owned("n2")
        await socket.send(hello(await begin(socket), node="n2"))
        code, why = await closed(socket)
        assert (code, "that of node n1" in why) == (4403, True)
        assert site.workers["n2"].link.is_up


async def test_what_a_newer_node_says_beyond_what_is_known_is_passed_over(site: Site) -> None:
    async with dialled(site.url) as socket:
        await socket.send(hello(await begin(socket), colour="blue"))
        assert (await received(socket))["message"]["type"] == "welcome"


async def test_what_is_for_a_feed_that_is_no_more_is_not_heard(site: Site) -> None:
    async with dialled(site.url) as socket:
        incarnation = await begin(socket)
        await socket.send(hello("0.0"))
        await socket.send(hello(incarnation).replace("reports", "gone"))
        await socket.send(hello(incarnation))
        assert (await received(socket))["message"]["type"] == "welcome"


async def test_a_message_that_is_too_large_ends_the_connection(site: Site) -> None:
    async with dialled(site.url) as socket:
        await begin(socket)
        await socket.send(" " * (MESSAGE_BYTES + 1))
        code, _ = await closed(socket)
        assert code == 1009


async def test_who_comes_again_takes_the_place_of_the_old_connection(site: Site) -> None:
    async with dialled(site.url) as old, dialled(site.url) as new:
        await old.send(hello(await begin(old)))
        await received(old)
        await new.send(hello(await begin(new)))
        assert (await received(new))["message"]["type"] == "welcome"
        code, why = await closed(old)
        assert (code, why) == (4409, "n1 has come on another connection")


async def test_a_commit_by_an_old_epoch_is_refused_and_changes_nothing(site: Site) -> None:
    site.feed.publish(SLICES)
    async with dialled(site.url) as socket:
        incarnation = await begin(socket)
        await socket.send(hello(incarnation))
        await until_async(lambda: site.owners() == {"n1"})
        file = site.feed.write([0])
        part = {**PART, "epoch": [1, 10_000]}
        await socket.send(said(incarnation, type="commit", batch=7, parts=[part], files=[file]))
        answers = [(await received(socket))["message"] for _ in range(3)]
        assert answers[-1] == {"type": "refused", "batch": 7, "positions": {"0": 0}}
        assert site.feed.rows == []


async def test_who_does_not_read_while_channels_change_is_told_the_newest_when_it_does(site: Site) -> None:
    async with dialled(site.url) as socket:
        await begin(socket)
        for number in range(2 * MOST_WAITING):
            site.heads._tell("Reports", node_channel("A", f"1.{number}"))
        message = await received(socket)
        while message["channel"]["tag"] != f"1.{2 * MOST_WAITING - 1}":
            message = await received(socket)
        await socket.send(hello(message["incarnation"]))
        assert (await received(socket))["message"]["type"] == "welcome"


def test_who_says_much_is_read_later() -> None:
    rate = SpeakingRate(0.0)
    assert rate.spend(0.0, 4000) == 0.0
    assert rate.spend(0.0, 2000) == 1.0
    assert rate.spend(2.0, 0) == 0.0


async def test_a_node_is_drained_by_call(settings: Settings) -> None:
    cluster = MemoryCluster()
    async with (
        running(cluster, settings, tokens=MemoryTokens()) as (url, _),
        httpx.AsyncClient(base_url=url, verify=False) as client,
    ):
        admin = {"Authorization": "Bearer admin"}
        answer = await client.put("/nodes/n1/draining", content=b'{"on": true}', headers=admin)
        assert (answer.status_code, answer.json()) == (200, {"on": True})
        assert cluster.drained == {"n1": True}
        node = {"Authorization": "Bearer node"}
        assert (await client.put("/nodes/n1/draining", content=b'{"on": true}', headers=node)).status_code == 403
        assert (await client.put("/nodes/n1/draining", content=b"{}", headers=admin)).status_code == 400
        shown = await client.get("/slices", headers=node)
        needed = {"elastic": False, "wanted": 0, "spare": "", "leaving": []}
        told = {"sharing": False, "drained": ["n1"], "feeds": [], "needed": needed}
        assert msgspec.json.decode(shown.content) == told

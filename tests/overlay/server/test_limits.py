"""What anybody may do to a broker of the overlay who can reach it: whoever does too much hurts nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import InvalidStatus

from tests.overlay.server.running import edge, head, talk
from tests.waiting import SECONDS, until_async
from tocsin.http import doorway
from tocsin.overlay.client import HeadCursor, connect
from tocsin.overlay.dialogue import Began, Introduce, Known, Publish, Refused, Stored, Subscribe

DEEP = 20_000


@asynccontextmanager
async def wire(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A bare connection."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def is_served(root: str, name: str = "honest") -> bool:
    """Whether an honest publisher is."""
    async with connect(root, name=name) as publisher, asyncio.timeout(SECONDS):
        await publisher.publish({"high": 1})
    return True


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        (" and ".join(f"a{number} = 1" for number in range(40)), "a filter with 40 conditions; at most 32 are taken"),
        ("a in (" + ", ".join(map(str, range(500))) + ")", "a filter with 500 alternatives; at most 64 are taken"),
        ("(" * DEEP + "a = 1" + ")" * DEEP, "characters; at most 4,096 are taken"),
        ("a = 1 and a = 2", "no value of 'a' can be all that is asked of it"),
    ],
)
async def test_a_filter_that_is_too_much_is_refused(tmp_path: Path, where: str, reason: str) -> None:
    async with head(tmp_path) as root, edge(root) as url:
        async with talk(url) as me:
            await me.say(Subscribe("me", where))
            refused = await me.hear()
            assert isinstance(refused, Refused)
            assert reason in refused.message
            assert (await me.closed())[0] == 4400
        async with talk(url) as other:
            await other.say(Subscribe("other", "a = 1"))
            assert isinstance(await other.hear(), Began)


LONG = " and ".join(f"`{chr(97 + at) * 128}`between'{'x' * 90}'and'{'y' * 8}'" for at in range(16))


@pytest.mark.parametrize("where", ["a > 1e20", "a != -1e308", LONG])
async def test_a_filter_that_is_taken_is_understood_by_all_brokers(tmp_path: Path, where: str) -> None:
    async with head(tmp_path) as root, edge(root) as url, connect(url) as honest, talk(url) as other:
        subscription = await honest.subscribe("high > 0")
        await other.say(Subscribe("other", where))
        assert isinstance(await other.hear(), Began)
        await is_served(root)
        async with asyncio.timeout(SECONDS):
            assert (await anext(subscription)).publisher == "honest"


@pytest.mark.parametrize(
    "message",
    [
        '{"type": "Publish", "sequence": 1, "content": ' + "[" * DEEP + "]" * DEEP + "}",
        '{"type": "Publish", "sequence": 1, "content": {"a": ' + '{"a": ' * 5000 + "1" + "}" * 5001 + "}",
        '{"type": "Publish", "sequence": 1e400, "content": {}}',
        '{"type": "Publish", "sequence": 99999999999999999999999999, "content": {}}',
        '"' + "\\ud800" * 100 + '"',
    ],
)
async def test_a_message_that_is_too_deep_or_too_large_a_number_is_refused(tmp_path: Path, message: str) -> None:
    async with head(tmp_path) as root:
        async with talk(root) as publisher:
            await publisher.socket.send(message)
            assert isinstance(await publisher.hear(), Refused)
            assert (await publisher.closed())[0] == 4400
        assert await is_served(root)


async def test_a_publication_that_is_too_much_is_refused_alone(tmp_path: Path) -> None:
    async with head(tmp_path) as root, talk(root) as publisher:
        await publisher.say(Introduce("p"))
        assert isinstance(await publisher.hear(), Known)
        for content in ({f"a{number}": 1.0 for number in range(65)}, {"a": "x" * 1025}, {"a" * 129: 1.0}):
            await publisher.say(Publish(1, content))  # type: ignore[arg-type]
            refused = await publisher.hear()
            assert isinstance(refused, Refused)
            assert refused.sequence == 1
        await publisher.say(Publish(1, {"a": 1.0}))
        assert await publisher.hear() == Stored(1)


async def test_numbers_that_a_publisher_leaves_out_are_bounded(tmp_path: Path) -> None:
    async with head(tmp_path) as root, talk(root) as publisher:
        await publisher.say(Introduce("p"), Publish(2**61, {}))
        assert isinstance(await publisher.hear(), Known)
        refused = await publisher.hear()
        assert isinstance(refused, Refused)
        assert "more than 1,000,000 were left out" in refused.message


async def test_cursors_are_bounded_and_a_made_up_one_hurts_only_who_made_it_up(tmp_path: Path) -> None:
    async with head(tmp_path) as root, edge(root, message_bytes=10**6) as url:
        async with talk(url) as greedy:
            await greedy.say(Subscribe("greedy", "a = 1", {f"h{number}": HeadCursor(0) for number in range(201)}))
            refused = await greedy.hear()
            assert isinstance(refused, Refused)
            assert "200 at most" in refused.message
        async with talk(url) as liar, connect(url) as honest:
            await liar.say(Subscribe("liar", "high > 0", {"h": HeadCursor(2**61, "x"), "none": HeadCursor(7)}))
            began = await liar.hear()
            assert isinstance(began, Began)
            assert (began.offset, began.shared) == (0, -1)
            subscription = await honest.subscribe("high > 0")
            await is_served(root)
            async with asyncio.timeout(SECONDS):
                assert (await anext(subscription)).publisher == "honest"


async def test_one_client_too_many_is_refused_until_another_leaves(tmp_path: Path) -> None:
    async with head(tmp_path, connections=2) as root:
        async with talk(root), talk(root):
            with pytest.raises(InvalidStatus) as refused:
                await dial(f"{root}/client", proxy=None)
            assert refused.value.response.status_code == 503
            assert b"overlay.connections = 2" in (refused.value.response.body or b"")

        async def served() -> bool:
            try:
                return await is_served(root)
            except Exception:  # the others may not have left yet
                return False

        assert await until_async(served)


async def test_whoever_is_still_being_let_in_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_in, accept = asyncio.Event(), WebSocket.accept

    async def accept_slowly(self: WebSocket, *arguments: Any, **options: Any) -> None:
        await let_in.wait()
        await accept(self, *arguments, **options)

    monkeypatch.setattr(WebSocket, "accept", accept_slowly)
    async with head(tmp_path, connections=2) as root:

        async def connecting() -> ClientConnection:
            return await dial(f"{root}/client", proxy=None)

        done, waiting = set[asyncio.Task[ClientConnection]](), {asyncio.create_task(connecting()) for _ in range(5)}
        while len(done) < 3:
            ended, waiting = await asyncio.wait(waiting, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
            assert ended
            done |= ended
        assert {each.exception().response.status_code for each in done} == {503}  # type: ignore[union-attr]
        let_in.set()
        for each in waiting:
            await (await each).close()


async def test_who_says_too_much_is_cut_off(tmp_path: Path) -> None:
    async with head(tmp_path) as root, edge(root) as url, talk(url) as me:
        for number in range(40):
            await me.say(Subscribe("me", f"a = {number}"))
        assert await me.closed() == (4429, "too many messages in too short a time")


async def test_who_connects_and_says_nothing_has_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorway, "HEAD_SECONDS", 0.2)
    async with head(tmp_path) as root:
        for said in (b"", b"GET /client HTTP/1.1\r\nHost: 127.0.0.1\r\n"):
            async with wire(root) as (reader, writer), asyncio.timeout(SECONDS):
                writer.write(said)
                with suppress(ConnectionError):
                    assert await reader.read() == b""
        assert await is_served(root)


async def test_a_client_that_has_nothing_to_say_stays(tmp_path: Path) -> None:
    async with head(tmp_path) as root, talk(root) as silent:
        assert await is_served(root)
        await silent.say(Introduce("p"))
        assert isinstance(await silent.hear(), Known)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/client", {"Origin": "https://elsewhere.example"}, 403),
        ("/link?broker=x&role=edge", {"Origin": "https://elsewhere.example"}, 403),
        ("/link?broker=x&role=king", {}, 400),
        ("/nothing", {}, 403),
    ],
)
async def test_a_handshake_that_cannot_be_is_refused(
    tmp_path: Path, path: str, headers: dict[str, str], status: int
) -> None:
    async with head(tmp_path) as root:
        with pytest.raises(InvalidStatus) as refused:
            await dial(f"{root}{path}", additional_headers=headers, proxy=None)
        assert refused.value.response.status_code == status
        assert await is_served(root)


async def test_a_call_where_a_websocket_is_meant_is_told_so(tmp_path: Path) -> None:
    async with head(tmp_path) as root, httpx.AsyncClient(trust_env=False, verify=False) as http:
        answer = await http.get(f"{root.replace('ws', 'http')}/client")
        assert answer.status_code == 404
        assert "there is no call GET /client" in answer.json()["error"]["message"]

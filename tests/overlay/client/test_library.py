from __future__ import annotations

import asyncio
import json
import shutil
from http import HTTPStatus
from pathlib import Path

import msgspec
import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from tests.overlay.server.running import edge, head
from tests.ports import free_port
from tests.waiting import SECONDS
from tocsin.errors import InvalidError, UnauthorizedError, UnavailableError
from tocsin.overlay.client import ContentSubscription, Gap, HeadCursor, connect
from tocsin.overlay.dialogue import Began, Move, Note, ToSubscriber


async def highs(subscription: ContentSubscription, count: int) -> list[float]:
    """What the next publications say."""
    async with asyncio.timeout(SECONDS):
        return [float((await anext(subscription)).content["high"]) for _ in range(count)]


async def publish(url: str, *values: float, name: str = "p") -> None:
    async with connect(url, name=name) as publisher:
        await asyncio.gather(*(publisher.publish({"symbol": "YHOO", "high": high}) for high in values))


async def test_who_subscribes_gets_what_matches_in_order(tmp_path: Path) -> None:
    async with head(tmp_path) as root, edge(root) as url, connect(url) as me:
        subscription = await me.subscribe(where="symbol = 'YHOO' and high > 40")
        await publish(root, 39, 41, 12, 50)
        assert await highs(subscription, 2) == [41, 50]


async def test_who_comes_to_another_edge_with_its_cursors_goes_on_where_it_was(tmp_path: Path) -> None:
    async with head(tmp_path) as root, edge(root, "a") as first, edge(root, "b") as second:
        async with connect(first) as me:
            subscription = await me.subscribe("high > 40")
            await publish(root, 41, 42, 43)
            # The third was asked for, so the second was had; the third itself was not.
            assert await highs(subscription, 3) == [41, 42, 43]
            assert subscription.cursors["h"].offset == 2
        await publish(root, 44)
        async with connect(second) as me:
            # As a program would keep them.
            kept = json.loads(json.dumps(subscription.cursors))
            again = await me.subscribe("high > 40", cursors=kept)
            assert await highs(again, 2) == [43, 44]


async def test_what_is_not_kept_any_more_is_handed_to_the_application(tmp_path: Path) -> None:
    async with head(tmp_path, replay_publications=2) as root:
        await publish(root, 1, 2, 3, 4, 5)
    gaps: list[Gap] = []
    async with head(tmp_path, replay_publications=2) as root, edge(root) as url, connect(url) as me:
        subscription = await me.subscribe("high > 0", cursors={"h": HeadCursor(0)}, on_gap=gaps.append)
        assert await highs(subscription, 2) == [4, 5]
    assert gaps == [Gap("h", 1, 3)]


async def test_a_head_that_lost_its_disk_is_gone_on_with_and_the_gap_is_told(tmp_path: Path) -> None:
    gaps: list[Gap] = []
    port = free_port()
    async with head(tmp_path, port=port) as root:
        publisher = connect(root, name="p")
        for number in (1, 2, 3):
            await publisher.publish({"high": number})
        async with edge(root) as url, connect(url) as me:
            subscription = await me.subscribe("high > 0", cursors={"h": HeadCursor(0)})
            assert await highs(subscription, 3) == [1, 2, 3]
            kept = subscription.cursors
    shutil.rmtree(tmp_path / "h")
    async with publisher, head(tmp_path, port=port) as root, edge(root) as url, connect(url) as me:
        await publisher.publish({"high": 4})
        subscription = await me.subscribe("high > 0", cursors=kept, on_gap=gaps.append)
        await publisher.publish({"high": 5})
        assert await highs(subscription, 2) == [4, 5]
    assert gaps == [Gap("h", 3, None)]


async def test_one_connection_may_have_several_subscriptions(tmp_path: Path) -> None:
    async with head(tmp_path) as root, edge(root) as url, connect(url) as me:
        low, high = await me.subscribe("high < 10"), await me.subscribe("high >= 10")
        await publish(root, 5, 15)
        assert (await highs(low, 1), await highs(high, 1)) == ([5], [15])


async def test_a_closed_subscription_ends_its_loop(tmp_path: Path) -> None:
    async with head(tmp_path) as root, edge(root) as url, connect(url) as me:
        subscription = await me.subscribe("high > 0")
        await subscription.close()
        assert [note async for note in subscription] == []


async def test_mistakes_are_told_as_sentences(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="connect with the URL of an edge or a head"):
        connect("127.0.0.1:8711")
    async with head(tmp_path) as root, edge(root) as url:
        async with connect(url) as me:
            with pytest.raises(InvalidError, match="a value is expected"):
                await me.subscribe("high >")
            with pytest.raises(InvalidError, match="e is an edge, which serves subscribers: publish to a head"):
                await me.publish({"high": 1})
            with pytest.raises(InvalidError, match="these are no cursors of a subscription: Expected `array`"):
                await me.subscribe("high > 1", cursors={"h": 5})  # type: ignore[dict-item]
        async with connect(root) as me:
            with pytest.raises(InvalidError, match="h is a head, which takes publications"):
                await me.subscribe("high > 1")
            with pytest.raises(InvalidError, match="values are strings, numbers, true or false"):
                await me.publish({"high": [1]})
            await me.publish({"high": 1})


async def test_where_nobody_listens_that_is_told_at_once() -> None:
    async with connect("ws://127.0.0.1:1", "ws://127.0.0.1:2") as me:
        with pytest.raises(UnavailableError, match="no edge can be subscribed at"):
            await me.subscribe("high > 1")
        with pytest.raises(UnavailableError, match="no head can be published to"):
            await me.publish({"high": 1})


async def test_without_the_clients_token_nobody_comes_in(tmp_path: Path) -> None:
    async with head(tmp_path, client_token="secret") as root, edge(root, client_token="secret") as url:
        async with connect(url) as me:
            with pytest.raises(UnauthorizedError, match="does not take this token"):
                await me.subscribe("high > 1")
        async with connect(root, client_token="secret") as publisher, connect(url, client_token="secret") as me:
            subscription = await me.subscribe("high > 1")
            await publisher.publish({"high": 2})
            assert await highs(subscription, 1) == [2]


async def test_who_is_asked_to_move_to_an_edge_that_does_not_take_its_token_stays() -> None:
    asked = 0

    def refuse(connection: ServerConnection, _: Request) -> Response:
        nonlocal asked
        asked += 1
        return connection.respond(HTTPStatus.UNAUTHORIZED, "")

    async def never(_: ServerConnection) -> None:
        raise AssertionError

    async def home(socket: ServerConnection) -> None:
        await socket.recv()
        await say(socket, Began("h", 0, "h.1"))
        # Who moves already does not listen: when the other one is asked again, the first refusal was heard.
        while asked < 2:
            await say(socket, Move(f"ws://127.0.0.1:{port(strict)}", "s", 1))
            await asyncio.sleep(0.01)
        await say(socket, Note("h", 1, "p", 1, {"high": 41}))
        await socket.wait_closed()

    async with (
        serve(never, "127.0.0.1", 0, process_request=refuse) as strict,
        serve(home, "127.0.0.1", 0) as mild,
        connect(f"ws://127.0.0.1:{port(mild)}") as me,
    ):
        assert await highs(await me.subscribe("high > 0"), 1) == [41]


async def test_who_is_not_taken_at_one_edge_goes_to_another(tmp_path: Path) -> None:
    async with head(tmp_path) as root, edge(root, "a", client_token="secret") as strict, edge(root, "b") as mild:
        async with connect(strict, mild) as me:
            subscription = await me.subscribe("high > 1")
            assert subscription.edge == mild
        async with connect(strict, "ws://127.0.0.1:1") as me:
            with pytest.raises(UnauthorizedError, match="does not take this token"):
                await me.subscribe("high > 1")


async def say(socket: ServerConnection, message: ToSubscriber) -> None:
    await socket.send(msgspec.json.encode(message).decode())


def port(server: Server) -> int:
    return int(next(iter(server.sockets)).getsockname()[1])

"""A broker's server serves subscribers as the protocol says, and tells operators how it is."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import InvalidStatus

from tests.broker.server.world import Client, World
from tocsin.errors import BusyError, InvalidError
from tocsin.model.messages import Failure


async def test_a_subscriber_logs_in_subscribes_and_is_told_what_is_found(world: World) -> None:
    async with world.member("ann") as ann:
        be = await world.subscription(ann, "flood")
        world.execute(1, be, b'[{"x": 1.5}]')
        assert await ann.receive() == {"type": "notes", "notes": [{"s": be, "e": 1, "payload": [{"x": 1.5}]}]}


async def test_what_many_want_is_pulled_once_and_sent_to_each(world: World) -> None:
    async with world.member("ann") as ann, world.member("bob") as bob:
        be = await world.subscription(ann, "flood")
        assert await world.subscription(bob, "flood") == be
        world.execute(1, be)
        assert await ann.receive() == await bob.receive()


@pytest.mark.parametrize("size", [10, 200, 70_000])
async def test_notes_of_every_size_arrive(world: World, size: int) -> None:
    async with world.member("ann") as ann:
        be = await world.subscription(ann, "flood")
        world.execute(1, be, msgspec.json.encode(["x" * size]))
        assert (await ann.receive())["notes"][0]["payload"] == ["x" * size]


async def test_who_comes_back_gets_what_was_found_meanwhile(world: World) -> None:
    async with world.member("ann") as ann:
        be = await world.subscription(ann, "flood")
        await ann.send(type="logout")
        assert await ann.end() == ([], 4000)
    world.execute(1, be)
    token = await world.token("ann")
    async with world.client() as again:
        await again.send(type="login", token=token)
        assert (await again.receive())["subscriptions"][0]["cursor"] == 0
        assert (await again.receive())["notes"][0]["e"] == 1


async def test_a_message_in_parts_is_one_message(world: World) -> None:
    token = await world.token("ann")
    async with world.client() as client:
        text = msgspec.json.encode({"type": "login", "token": token}).decode()
        await client.socket.send([text[:10], text[10:11], "", text[11:]])
        assert (await client.receive())["type"] == "welcome"


async def test_a_ping_is_answered(world: World) -> None:
    async with world.client() as client:
        await (await client.socket.ping(b"there?"))


async def publish(client: Client, *records: object) -> dict[str, object]:
    return await client.ask(type="publish", id=7, feed="places", records=list(records))


async def test_records_travel_on_to_the_data_cluster(world: World) -> None:
    async with world.member("ann") as ann:
        answer = await publish(ann, {"userId": "ann", "x": 1.0, "y": 2.0}, {"userId": 3})
        assert answer.pop("refused")[0]["index"] == 1  # type: ignore[index]
        assert answer.pop("unlisted") == 0
        assert answer == {"type": "published", "id": 7, "accepted": 1}
        assert [msgspec.json.decode(line)["x"] for line in world.cluster.published["places"]] == [1.0]


async def test_records_none_of_which_is_accepted_are_refused_one_by_one(world: World) -> None:
    async with world.member("ann") as ann:
        answer = await publish(ann, {"userId": 1}, {"userId": 2})
        assert answer["accepted"] == 0
        assert [one["index"] for one in answer["refused"]] == [0, 1]  # type: ignore[attr-defined]


async def test_a_busy_data_cluster_is_told_with_the_time_to_wait(world: World) -> None:
    async with world.member("ann") as ann:
        world.cluster.failing = BusyError("the feed's log is full", retry_after=2.5)
        answer = await publish(ann, {"userId": "ann"})
        expected = {"type": "error", "id": 7, "code": "busy", "message": "the feed's log is full", "retry_after": 2.5}
        assert answer == expected


@pytest.mark.parametrize("feed", ["nowhere", "", "..", "a/b", "ä" * 1000])
async def test_a_feed_that_does_not_exist_is_not_found(world: World, feed: str) -> None:
    async with world.member("ann") as ann:
        answer = await ann.ask(type="publish", id=7, feed=feed, records=[{}])
        assert (answer["type"], answer["code"], answer["id"]) == ("error", "not-found", 7)


async def test_an_unknown_channel_is_not_found_and_the_connection_stays(world: World) -> None:
    async with world.member("ann") as ann:
        answer = await ann.ask(type="subscribe", id=1, channel="Nowhere", parameters={})
        assert (answer["code"], answer["id"]) == ("not-found", 1)
        await world.subscription(ann, "flood")


async def test_a_wrong_parameter_is_answered_with_the_data_clusters_reason(world: World) -> None:
    async with world.member("ann") as ann:
        world.cluster.failing = InvalidError("parameter event: expected STRING, got 5")
        answer = await ann.ask(type="subscribe", id=1, channel="Of", parameters={"event": 5})
        assert (answer["code"], answer["message"]) == ("invalid", "parameter event: expected STRING, got 5")


async def test_a_second_connection_of_the_same_subscriber_takes_the_place_of_the_first(world: World) -> None:
    token = await world.token("ann")
    async with world.client() as first, world.client() as second:
        await first.ask(type="login", token=token)
        await second.ask(type="login", token=token)
        assert (await first.end())[1] == 4409
        await world.subscription(second, "flood")


async def test_operators_see_the_figures(world: World) -> None:
    async with world.member("ann") as ann, world.client() as stranger:
        be = await world.subscription(ann, "flood")
        world.execute(1, be)
        await ann.receive()
        await stranger.send(type="login", token="guess")
        assert (await stranger.end())[1] == 4401
        status = await world.status()
    assert (status["broker"], status["url"], status["health"]["status"]) == ("north", world.url, "ok")
    assert (status["subscribers"], status["online"], status["subscriptions"], status["lines"]) == (1, 1, 1, 1)
    assert status["outgoing"] >= status["incoming"] > 0
    assert status["cache"]["bytes"] > 0
    assert (status["accepted"], status["closed"], status["slow"]) == (2, {"4401": 1}, [])


async def test_nobody_else_sees_them(world: World) -> None:
    token = await world.token("ann")
    for shown, status in (("", 401), ("Bearer x", 401), (f"Bearer {token}", 403)):
        answer = await world.calls.get(f"{world.broker}/status", headers={"Authorization": shown})
        assert answer.status_code == status
        assert msgspec.json.decode(answer.content, type=Failure).error.message


@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/subscriber", 426)])
async def test_calls_that_do_not_exist_say_so(world: World, path: str, status: int) -> None:
    answer = await world.calls.get(world.broker + path)
    assert answer.status_code == status
    assert msgspec.json.decode(answer.content, type=Failure).error.message


async def refusal(world: World, **options: object) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refused:
        async with world.client(**options):
            pass
    response = refused.value.response
    return response.status_code, msgspec.json.decode(response.body or b"", type=Failure).error.message


async def test_only_pages_of_the_origins_that_are_listed_may_connect(tmp_path: Path) -> None:
    async with World(tmp_path, {"origins": ["https://here.example"]}) as world:
        async with world.client(origin="https://here.example"), world.client():
            pass
        status, message = await refusal(world, origin="https://elsewhere.example")
    assert status == 403
    assert "https://elsewhere.example" in message


async def test_connections_without_a_login_do_not_keep_others_out(tmp_path: Path) -> None:
    async with World(tmp_path, {"connections": 2}) as world, AsyncExitStack() as stack:
        strangers = [await stack.enter_async_context(world.client()) for _ in range(5)]
        async with world.member("ann") as ann:
            await world.subscription(ann, "flood")
            assert [len((await stranger.end())[0]) for stranger in strangers[:4]] == [0, 0, 0, 0]
            late = await stack.enter_async_context(world.client())
            assert (await strangers[4].end())[0] == []
            # Whoever has logged in stays, however many come after.
            await world.subscription(ann, "fire")
            await late.socket.close()


async def test_one_connection_too_many_is_refused_until_another_ends(tmp_path: Path) -> None:
    async with World(tmp_path, {"connections": 1}) as world:
        async with world.member("ann"):
            status, message = await refusal(world)
            assert (status, "all the 1 connections" in message) == (503, True)
        await world.still_serves()


async def test_until_the_coordinator_was_reached_everybody_is_asked_to_wait(tmp_path: Path) -> None:
    world = World(tmp_path, coordinator="http://127.0.0.1:9", data="http://127.0.0.1:9")
    async with world.running_broker() as world.broker:
        status, message = await refusal(world)
        assert (status, "coordinator" in message) == (503, True)


async def test_a_stop_closes_subscribers_after_what_was_sent_to_them(tmp_path: Path) -> None:
    async with World(tmp_path) as world:
        token = await world.token("ann")
        waiting = asyncio.get_running_loop().create_future()

        async def stay() -> tuple[list[str], int]:
            async with world.client() as ann:
                await ann.send(type="login", token=token)
                waiting.set_result(await ann.receive())
                answers, code = await ann.end()
                return [answer["type"] for answer in answers], code

        staying = asyncio.create_task(stay())
        await waiting
    assert await staying == ([], 1001)


async def test_the_demo_token_is_an_operators_where_the_broker_was_started_with_it(world: World) -> None:
    shown = {"Authorization": "Bearer demo"}
    assert (await world.calls.get(f"{world.broker}/status", headers=shown)).status_code == 200

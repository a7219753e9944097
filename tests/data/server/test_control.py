from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tests.data.server.running import running
from tocsin.data.server import control
from tocsin.model.histories import Cursor
from tocsin.settings import DataSettings, Settings

Connect = Callable[..., AbstractAsyncContextManager[ClientConnection]]


@pytest.fixture
async def url(cluster: MemoryCluster, settings: Settings) -> AsyncIterator[str]:
    """The address of a server that takes messages of up to 64 KiB."""
    data = DataSettings(directory=settings.data.directory, port=0, max_request_bytes=1 << 16)
    async with running(cluster, Settings(data=data), demo_token="demo") as (url, _):
        yield url


@pytest.fixture
def dial(url: str) -> Connect:
    """Connects a broker with its token in the header, or as the first message, or not at all."""

    @asynccontextmanager
    async def dialled(
        token: str | None = "broker", broker: str = "north", first: str | None = None
    ) -> AsyncIterator[ClientConnection]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        target = f"{url.replace('http', 'ws')}/control?broker={broker}"
        async with connect(target, additional_headers=headers, proxy=None) as socket:
            if first is not None:
                await socket.send(first)
            yield socket

    return dialled


@pytest.fixture
async def north(cluster: MemoryCluster, dial: Connect) -> AsyncIterator[ClientConnection]:
    """A connection of the broker north, welcomed."""
    cluster.brokers["north"] = "ws://north"
    await cluster.apply("CREATE DATASET D (id STRING); CREATE CONTINUOUS CHANNEL Of(e STRING) AS SELECT 1", None)
    async with dial() as socket:
        assert await received(socket) == {"type": "welcome", "broker": "north"}
        yield socket


async def received(socket: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await socket.recv())
    return message


async def asked(socket: ClientConnection, **message: object) -> dict[str, Any]:
    await socket.send(json.dumps(message))
    return await received(socket)


async def closed(socket: ClientConnection) -> int | None:
    """The code the server closes with."""
    await socket.wait_closed()
    return socket.close_code


async def test_a_broker_is_told_of_executions(cluster: MemoryCluster, north: ClientConnection) -> None:
    cluster.execute("north", "Of", 1, [4, 7])
    told = {"type": "executed", "channel": "Of", "execution": 1, "bes": [4, 7], "incarnation": ""}
    assert await received(north) == told | {"rates": [4.5, 7.5], "seconds": 10.0}


async def test_requests_are_answered_under_their_ids(cluster: MemoryCluster, north: ClientConnection) -> None:
    attach = {"type": "attach", "id": 1, "channel": "Of", "parameters": [{"e": "a"}, {"e": "b"}]}
    about = {"channel": "Of", "parameters": [{"e": "a"}, {"e": "b"}], "history": [], "terms": {}}
    rates = {"rates": [0.5, None], "seconds": 4.0}
    attached = {"type": "attached", "id": 1, "bes": [0, 1], "execution": 0}
    assert await asked(north, **attach) == attached | about | rates
    assert await asked(north, type="detach", id=2, bes=[0]) == {"type": "detached", "id": 2, "count": 1}
    assert await asked(north, type="ping", id=3) == {"type": "pong", "id": 3}


async def test_what_a_broker_knows_of_a_channel_is_compared(cluster: MemoryCluster, north: ClientConnection) -> None:
    await asked(north, type="attach", id=1, channel="Of", parameters=[{"e": "a"}], known=[7, "before"])
    await asked(north, type="attach", id=2, channel="Of", parameters=[{"e": "a"}])
    assert cluster.compared == [("north", "Of", Cursor(7, "before"))]


async def test_one_pull_brings_several_executions_with_payloads_as_they_are(
    cluster: MemoryCluster, north: ClientConnection
) -> None:
    cluster.find(1, 7, b'[ {"x":1.0} ]')
    cluster.find(2, 7, b"[]")
    await north.send('{"type":"pull","id":5,"channel":"Of","first":1,"last":2,"bes":[7]}')
    text = await north.recv()
    assert isinstance(text, str)
    assert '"payload":[ {"x":1.0} ]' in text
    assert [result["execution"] for result in json.loads(text)["results"]] == [1, 2]


@pytest.mark.parametrize(
    ("message", "id"),
    [
        ("", None),
        ("not JSON", None),
        ("[]", None),
        ('{"type":"dance","id":4}', 4),
        ('{"type":"attach","id":5}', 5),
        ('{"type":"pull","id":6,"channel":"Of","first":-1,"last":2}', 6),
        ('{"type":"ping","id":"seven"}', None),
        ("[" * 5_000, None),
    ],
)
async def test_a_message_that_makes_no_sense_is_answered_and_the_connection_stays(
    north: ClientConnection, message: str, id: int | None
) -> None:
    await north.send(message)
    error = await received(north)
    assert (error["type"], error["code"], error.get("id")) == ("error", "invalid", id)
    assert await asked(north, type="ping", id=1) == {"type": "pong", "id": 1}


async def test_errors_of_the_cluster_are_answered_and_faults_only_referred_to(
    cluster: MemoryCluster, north: ClientConnection
) -> None:
    missing = await asked(north, type="attach", id=1, channel="No", parameters=[])
    assert missing == {"type": "error", "code": "not-found", "message": "there is no channel No", "id": 1}
    cluster.failing = ZeroDivisionError("secret")
    fault = await asked(north, type="detach", id=2, bes=[])
    assert (fault["code"], fault["id"], "secret" in json.dumps(fault)) == ("internal", 2, False)
    assert fault["reference"] in fault["message"]


async def test_a_binary_message_closes_with_1003(north: ClientConnection) -> None:
    await north.send(b"\x00\xff")
    assert await closed(north) == 1003


async def test_a_message_over_the_bound_closes_with_1009(north: ClientConnection) -> None:
    await north.send(" " * ((1 << 16) + 1))
    assert await closed(north) == 1009


async def test_the_token_may_be_the_first_message(cluster: MemoryCluster, dial: Connect) -> None:
    cluster.brokers["north"] = "ws://north"
    async with dial(token=None, first='{"type":"token","token":"broker"}') as socket:
        assert (await received(socket))["type"] == "welcome"


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ('{"type":"token","token":"guess"}', 4401),
        ('{"type":"token","token":"publisher"}', 4403),
        ('{"type":"ping","id":1}', 4401),
        ("", 4401),
    ],
)
async def test_a_first_message_without_a_good_token_is_refused(dial: Connect, first: str, code: int) -> None:
    async with dial(token=None, first=first) as socket:
        assert (await received(socket))["type"] == "error"
        assert await closed(socket) == code


async def test_only_so_many_tokens_are_waited_for_and_brokers_who_show_theirs_at_once_are_served(
    dial: Connect,
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(control.MOST_UNNAMED):
            await stack.enter_async_context(dial(token=None))
        with pytest.raises(InvalidStatus) as refused:
            await stack.enter_async_context(dial(token=None))
        assert refused.value.response.status_code == 503
        await stack.enter_async_context(dial())


async def test_a_broker_that_sends_no_token_in_time_is_refused(dial: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "TOKEN_SECONDS", 0.01)
    async with dial(token=None) as socket:
        assert "no token came" in (await received(socket))["message"]
        assert await closed(socket) == 4401


@pytest.mark.parametrize(
    ("token", "broker", "status"), [("guess", "n", 401), ("publisher", "n", 403), ("demo", "", 400)]
)
async def test_a_header_that_does_not_do_is_refused_in_the_handshake(
    dial: Connect, token: str, broker: str, status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with dial(token=token, broker=broker):
            pass
    response = refused.value.response
    assert (response.status_code, list(json.loads(response.body or b""))) == (status, ["error"])


async def test_a_broker_nobody_registered_is_refused(dial: Connect) -> None:
    async with dial("broker-unknown", "unknown") as socket:
        assert (await received(socket))["code"] == "not-found"
        assert await closed(socket) == 4404


async def test_a_broker_that_leaves_is_listened_for_no_longer(cluster: MemoryCluster, north: ClientConnection) -> None:
    await north.close()
    async with asyncio.timeout(10):
        await cluster.left.wait()
    assert cluster.listeners == {}


async def test_a_broker_that_reads_too_slowly_is_told_a_range(
    cluster: MemoryCluster, dial: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "MOST_IDS", 500)
    cluster.brokers["north"] = "ws://north"
    executions = 2000
    async with dial() as socket:
        await received(socket)
        for execution in range(1, executions + 1):
            # All before the server gets to send the first: as if the socket took nothing for a while.
            cluster.execute("north", "Of", execution, [1, 2, 3])
        told: list[int] = []
        types = set()
        while len(told) < executions:
            message = await received(socket)
            types.add(message["type"])
            only = message.get("execution", 0)
            told += range(message.get("first", only), message.get("last", only) + 1)
        assert told == list(range(1, executions + 1))
        assert "behind" in types


async def test_a_fault_while_notices_are_collected_closes_with_4500(
    cluster: MemoryCluster, north: ClientConnection
) -> None:
    cluster.listeners["north"].put_nowait("not a notice")  # type: ignore[arg-type]
    assert (await received(north))["code"] == "internal"
    assert await closed(north) == 4500


async def test_a_brokers_token_names_one_broker(cluster: MemoryCluster, dial: Connect) -> None:
    cluster.brokers |= {"north": "ws://north", "south": "ws://south"}
    with pytest.raises(InvalidStatus) as refused:
        async with dial("broker-south", "north"):
            pass
    assert refused.value.response.status_code == 403
    async with dial(None, "north", first='{"type":"token","token":"broker-south"}') as socket:
        assert "this is the token of broker south, and north needs its own" in (await received(socket))["message"]
        assert await closed(socket) == 4403
    for token in ("broker-south", "admin"):
        async with dial(token, "south") as socket:
            assert (await received(socket))["type"] == "welcome"


async def test_a_control_socket_ends_when_its_token_is_revoked(cluster: MemoryCluster, settings: Settings) -> None:
    tokens, data = MemoryTokens(), DataSettings(directory=settings.data.directory, port=0)
    cluster.brokers["north"] = "ws://north"
    async with running(cluster, Settings(data=data), tokens=tokens) as (url, _):
        target, headers = f"{url.replace('http', 'ws')}/control?broker=north", {"Authorization": "Bearer broker"}
        async with connect(target, additional_headers=headers, proxy=None) as socket:
            assert (await received(socket))["type"] == "welcome"
            tokens.revoked.add("broker")
            assert (await received(socket))["code"] == "unauthorized"
            assert await closed(socket) == 4401

"""How connections end that nobody needs any more: a broker is told that all is well."""

from __future__ import annotations

import asyncio

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests.waiting import until_async
from tocsin.client.core.actions import Troubled
from tocsin.client.core.connector import ABNORMAL
from tocsin.client.core.events import Event, Lost, Opened
from tocsin.client.rules import Rules
from tocsin.client.socket import BrokerSocket
from tocsin.trust import trust


async def test_a_connection_that_is_left_is_closed_normally_and_not_with_a_fault() -> None:
    codes: asyncio.Queue[int | None] = asyncio.Queue()
    told: list[Event] = []

    async def broker(socket: ServerConnection) -> None:
        await socket.wait_closed()
        codes.put_nowait(socket.close_code)

    async with serve(broker, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        socket = BrokerSocket(1, f"ws://127.0.0.1:{port}", Rules(), told.append, lambda _: None, trust)
        await until_async(lambda: told == [Opened(1)], "connection")
        socket.close()
        assert await codes.get() == 1000
        await asyncio.gather(socket.task, return_exceptions=True)


@pytest.mark.parametrize("url", ["ws://127.0.0.1:99999", "ws://a..b:1", "ws://[::1", "http://127.0.0.1:1", ""])
async def test_a_broker_whose_url_is_none_is_one_that_cannot_be_reached(url: str) -> None:
    told: list[Event] = []
    troubles: list[Troubled] = []
    await BrokerSocket(1, url, Rules(), told.append, troubles.append, trust).task
    assert told == [Lost(1, ABNORMAL)]
    assert [trouble.message.startswith(f"the broker at {url} cannot be reached: ") for trouble in troubles] == [True]

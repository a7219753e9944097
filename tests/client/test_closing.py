"""How connections end that nobody needs any more: a broker is told that all is well."""

from __future__ import annotations

import asyncio

from websockets.asyncio.server import ServerConnection, serve

from tests.waiting import until_async
from tocsin.client.core.events import Event, Opened
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

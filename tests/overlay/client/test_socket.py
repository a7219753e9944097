"""What keeps a client of the overlay from being connected is told to who waits, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tocsin.errors import SettingsError, UnavailableError
from tocsin.overlay.client.connecting import OverlayConnection, connect

Call = Callable[[OverlayConnection], Any]
CALLS: list[Call] = [lambda me: me.publish({"high": 41}), lambda me: me.subscribe("high > 40")]
either = pytest.mark.parametrize("call", CALLS, ids=["publish", "subscribe"])


@either
async def test_authorities_that_cannot_be_read_are_told(tmp_path: Path, call: Call) -> None:
    async with connect("wss://127.0.0.1:1", ca=str(tmp_path / "none.pem")) as me:
        with pytest.raises(SettingsError, match=r"none\.pem \(tls\.ca\) cannot be used: No such file or directory"):
            await call(me)


@either
@pytest.mark.parametrize("url", ["ws://127.0.0.1:99999", "ws://a..b:1", "ws://[::1"])
async def test_a_url_that_is_none_is_told(call: Call, url: str) -> None:
    async with connect(url) as me:
        with pytest.raises(UnavailableError, match=r"^no (head|edge) can be "):
            await call(me)


@either
@pytest.mark.parametrize("said", ["", "<html>", "[]", '{"type":"nonsense"}', b"\xff"])
async def test_a_broker_that_makes_no_sense_is_told(call: Call, said: str | bytes) -> None:
    async def broker(socket: ServerConnection) -> None:
        await socket.send(said)
        await socket.wait_closed()

    async with serve(broker, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}") as me:
            with pytest.raises(UnavailableError, match=r"^no (head|edge) can be "):
                await call(me)

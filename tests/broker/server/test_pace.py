"""Whoever says too much is read more slowly; nothing of it is lost, and nobody else waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.broker.server.world import World
from tocsin.broker.server.connection import SubscriberConnection

ACK = '{"type": "ack", "cursors": {}}'.ljust(60_000)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_whoever_says_too_much_is_read_later_and_heard_out(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    rested = list[float]()

    def rest(connection: SubscriberConnection, seconds: float) -> None:
        rested.append(seconds)
        read_later(connection, seconds)

    read_later = SubscriberConnection.read_later
    monkeypatch.setattr(SubscriberConnection, "read_later", rest)
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_heard_out(tmp_path, rested))


async def _heard_out(tmp_path: Path, rested: list[float]) -> None:
    async with World(tmp_path, {"bytes_per_second": 65_536.0}) as world, world.member("ann") as ann:
        for _ in range(3):
            await ann.socket.send(ACK)
        assert (await ann.ask(type="unsubscribe", id=1, subscription=1))["code"] == "not-found"
        assert rested
        await world.still_serves()


async def test_whoever_leaves_while_it_is_not_read_is_forgotten(tmp_path: Path) -> None:
    async with World(tmp_path, {"bytes_per_second": 65_536.0}) as world:
        async with world.member("ann") as ann:
            for _ in range(3):
                await ann.socket.send(ACK)
            ann.socket.transport.abort()
        await world.still_serves()

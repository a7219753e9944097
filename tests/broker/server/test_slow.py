"""A subscriber who does not read hurts nobody: little waits for it, others are served, and it catches up later."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop
from websockets.asyncio.client import connect

from tests.broker.server.test_bad_input import frame, raw
from tests.broker.server.world import Client, World
from tests.waiting import until_async

COUNT, PAYLOAD = 60, msgspec.json.encode(["x" * 50_000])


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_who_does_not_read_is_left_behind_and_catches_up(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_left_behind(tmp_path))


async def _left_behind(tmp_path: Path) -> None:
    async with World(tmp_path, {"waiting_bytes": 100_000}) as world:
        token = await world.token("ann")
        async with narrow(world) as narrowed, world.member("bob") as bob:
            ann = Client(narrowed)
            await ann.ask(type="login", token=token)
            be = await world.subscription(ann, "flood")
            assert await world.subscription(bob, "flood") == be
            for execution in range(1, COUNT + 1):
                world.execute(execution, be, PAYLOAD)
                assert [note["e"] for note in (await bob.receive())["notes"]] == [execution]

            async def is_slow() -> bool:
                return bool((await world.status())["slow"] == ["ann"])

            await until_async(is_slow, "slow subscriber")
            assert await everything(ann) == (list(range(1, COUNT + 1)), True)


def narrow(world: World) -> Any:
    """A connection for which the kernel keeps little, and that reads one message ahead."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
    host, port = world.broker.removeprefix("http://").split(":")
    peer.connect((host, int(port)))
    return connect(world.url, sock=peer, proxy=None, close_timeout=1, max_queue=1)


async def everything(client: Client) -> tuple[list[int], bool]:
    """The executions that come in the end, and whether the client was told that it is slow."""
    executions: list[int] = []
    told = False
    while COUNT not in executions:
        answer = await client.receive()
        told = told or answer["type"] == "slow"
        executions += [note["e"] for note in answer.get("notes", [])]
    return executions, told


async def test_who_reads_slowly_is_not_taken_for_gone(tmp_path: Path) -> None:
    """It has so much before it that a ping would not reach it in time; but it takes a little in every while."""
    async with World(tmp_path, {"waiting_bytes": 3_000_000, "ping_seconds": 0.3, "login_seconds": 60.0}) as world:
        token = await world.token("ann")
        async with narrow(world) as narrowed, raw(world) as clock, world.member("bob") as bob:
            ann = Client(narrowed)
            await ann.ask(type="login", token=token)
            be = await world.subscription(ann, "flood")
            assert await world.subscription(bob, "flood") == be
            await clock.upgrade()
            for execution in range(1, COUNT + 1):
                world.execute(execution, be, PAYLOAD)
                await bob.receive()
            executions: list[int] = []
            for _ in range(10):
                await clock.reader.readuntil(b"\x89\x00")  # as often as the broker looks for silent ones
                clock.writer.write(frame(0x8A))
                for _ in range(3):
                    executions += [note["e"] for note in (await ann.receive()).get("notes", [])]
            while COUNT not in executions:
                executions += [note["e"] for note in (await ann.receive()).get("notes", [])]
            assert executions == list(range(1, COUNT + 1))
            assert (await world.status())["closed"] == {}

"""A whole network on the running loop: brokers, coordinator, and a data cluster that finds what a test says.

The cores are those that are shipped, and talk with each other at once. Subscribers reach them as they would anywhere:
the coordinator by HTTP, the brokers by WebSocket, on 127.0.0.1. A test breaks what it wants to see broken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

from websockets.asyncio.server import ServerConnection, serve

from tocsin.broker import events as broker_events
from tocsin.broker.core import BrokerCore
from tocsin.broker.limits import BrokerLimits
from tocsin.client.rules import Rules
from tocsin.coordinator import answers, events
from tocsin.model import control
from tocsin.testing.calls import Calls
from tocsin.testing.scripted import Parameters, Rows
from tocsin.testing.serving import serving
from tocsin.testing.wires import Node, Wires

QUICK: Final = Rules(first_wait=0.02, longest_wait=0.1, ack_seconds=0.02, retry_seconds=0.02, renew_seconds=0.02)
"""Waits of a client that a test need not wait for."""


class Sandbox(Wires):
    """Enter it to start it; ``url`` is the coordinator's.

    Every channel exists, but ``Nowhere``. Nothing is executed, moves or dies unless a test says so.

    Args:
        brokers: their names; one, if none is named.
        limits: of the brokers.
    """

    def __init__(self, *brokers: str, limits: BrokerLimits | None = None) -> None:
        super().__init__()
        self._names, self._limits = brokers or ("a",), limits
        self.calls = Calls(self._ask)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        port = await self._stack.enter_async_context(serving(self.calls.serve))
        self.url = f"http://127.0.0.1:{port}"
        for name in self._names:
            await self.start(name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self.nodes):
            self.kill(name)
        if self._timer:
            self._timer.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    async def start(self, name: str) -> None:
        """Starts a broker, with nothing in its memory."""

        async def served(socket: ServerConnection) -> None:
            await self._serve(node, socket)

        server = await serve(served, "127.0.0.1", 0, compression=None, ping_interval=None, close_timeout=1)
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        core = BrokerCore(name, url, lambda token: self._bearer(name, token), limits=self._limits)
        node = self.nodes[name] = Node(name, core, next(self._numbers), server, url)
        self._tell_broker(node, broker_events.Connected("data"))
        self._tell_broker(node, broker_events.Connected("coordinator"))

    def kill(self, name: str) -> None:
        """Ends a broker as a crash does."""
        node = self.nodes.pop(name)
        node.server.close(close_connections=False)
        if node.timer:
            node.timer.cancel()
        for socket in node.sockets.values():
            socket.transport.abort()
        self._tell_coordinator(events.Lost(node.link))

    def cut(self) -> None:
        """Breaks all connections of subscribers."""
        for node in self.nodes.values():
            for socket in node.sockets.values():
                socket.transport.abort()

    def freeze(self) -> None:
        """Has all connections of subscribers stay open and fall silent."""
        for node in self.nodes.values():
            for socket in node.sockets.values():
                socket.transport.pause_reading()

    async def drain(self, name: str, on: bool = True) -> None:
        """Has a broker emptied."""
        await self._ask(lambda handle: events.Drain(handle, name, on))

    async def register(self, name: str) -> str:
        """A subscriber's token."""
        answer = await self._ask(lambda handle: events.RegisterUser(handle, name))
        assert isinstance(answer, answers.Registered)
        return answer.token

    def execute(self, channel: str, times: int = 1, find: Callable[[Parameters], Rows] | None = None) -> None:
        """Runs a channel. ``find`` says which rows it finds for the parameters of a subscription; else it is one row
        for everybody, with the numbers of the subscription and of the execution."""
        for _ in range(times):
            notices = self.data.find_rows(channel, find) if find else self.data.execute(channel, lambda _: True)
            for name, notice in notices.items():
                if name in self.nodes:
                    self._tell_broker(self.nodes[name], broker_events.Told(notice))

    def executions_with_results(self) -> dict[int, list[int]]:
        """The executions that found something for each BE subscription: what everybody is owed."""
        return {be: list(executions) for be, executions in self.data.found.items()}

    def restart_data(self, copy: dict[str, Any] | None = None) -> None:
        """Ends the data cluster, and starts it with its data, or as they are in a copy."""
        for node in self.nodes.values():
            self._tell_broker(node, broker_events.Lost("data"))
        if copy is not None:
            self.data.restore(copy)
        self.data.begin()
        for node in self.nodes.values():
            self._tell_broker(node, broker_events.Connected("data"))

    def drop(self, channel: str) -> None:
        """Drops a channel; brokers are told."""
        dropped = control.Dropped(channel, self.data.incarnation(channel))
        self.data.drop(channel)
        for node in self.nodes.values():
            self._tell_broker(node, broker_events.Told(dropped))

    def subscriptions_of(self, name: str) -> list[tuple[str, int]]:
        """What a subscriber holds by what the coordinator has stored: channels and numbers."""
        return [(held.channel, held.subscription) for held in self._core.view.subscriptions_of(name)]

    def where(self) -> list[str]:
        """The brokers that have connections."""
        return [node.name for node in self.nodes.values() if node.sockets]

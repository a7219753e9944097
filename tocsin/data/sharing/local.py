"""The data cluster as one of the nodes of a feed that it shares: calls are its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from tocsin.data.nodes.channels import NodeChannel
from tocsin.data.sharing import LOCAL
from tocsin.data.sharing.gauge import Usage
from tocsin.data.sharing.head import HeadDriver
from tocsin.data.sharing.node import NodeDriver, SliceWork
from tocsin.data.sharing.wire import FeedChannel, FeedChannelEnded, ForNode, ToNode
from tocsin.slices import events
from tocsin.slices.limits import SliceLimits
from tocsin.slices.messages import FromHead, FromNode
from tocsin.slices.node import NodeCore

_AGAIN_SECONDS: Final = 1.0


class NodeConnection(Protocol):
    """The other end of a node's connection. Neither call waits."""

    @property
    def node(self) -> str:
        """Whose it is."""

    def send(self, message: ForNode, /) -> None:
        """Sends soon."""

    def close(self, reason: str, /) -> None:
        """Ends it, and says why."""


class Switchboard(Protocol):
    """Where connections are known by numbers."""

    @property
    def drained(self) -> list[str]:
        """Whom an operator wants to be empty."""

    def register(self, connection: NodeConnection, /) -> int:
        """Gives a connection its number."""

    def disconnect(self, number: int, /) -> None:
        """It is over."""


class LocalNode:
    """A node in the head's own process. A message comes a turn of the loop after it was sent.

    What can go wrong: it is drained, and stops (:meth:`come_back` begins it anew, and it does so by itself if it was
    wanted again while it stopped); the head gives it up, since it has said nothing for too long (it says hello again).
    """

    node = LOCAL

    def __init__(
        self,
        switchboard: Switchboard,
        head: HeadDriver,
        work: SliceWork,
        usage: Callable[[], Usage | None],
        capacity: float,
        limits: SliceLimits,
    ) -> None:
        self._switchboard, self._head, self._work, self._usage = switchboard, head, work, usage
        self._capacity, self._limits = capacity, limits
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._channels: dict[str, NodeChannel] = {}
        self._driver = self._begin()

    @property
    def problem(self) -> str:
        """Why it does not get on."""
        return self._driver.problem

    def come_back(self) -> None:
        """Begins anew, if it has stopped."""
        if self._driver.core.stopped:
            self._driver = self._begin()

    async def stop(self) -> None:
        """Lets go of everything, after the batch at hand."""
        number, self._number = self._number, 0
        self._switchboard.disconnect(number)
        await self._driver.stop()
        await asyncio.to_thread(self._work.close)

    def send(self, message: ForNode) -> None:
        """The head says something."""
        match message:
            case ToNode(message=said):
                self._loop.call_soon(self._heard, self._number, said)
            case FeedChannel(channel=channel) if message.incarnation == self._head.incarnation:
                self.learn({**self._channels, channel.name: channel})
            case FeedChannelEnded(channel=name) if message.incarnation == self._head.incarnation:
                self.learn({known: channel for known, channel in self._channels.items() if known != name})

    def learn(self, channels: dict[str, NodeChannel]) -> None:
        """The channels by their names are these."""
        self._channels = channels
        self._work.learn(channels.values())

    def close(self, reason: str) -> None:  # noqa: ARG002
        """The head has given it up."""
        self._number = 0
        self._loop.call_soon(self._driver.lost)
        self._loop.call_later(_AGAIN_SECONDS, self._dial, self._driver)

    def _begin(self) -> NodeDriver:
        core = NodeCore(LOCAL, self._capacity, self._limits)
        driver = NodeDriver(core, self._work, self._say, self._stopped, self._usage)
        self._loop.call_soon(self._dial, driver)
        return driver

    def _dial(self, driver: NodeDriver) -> None:
        if driver is self._driver and not driver.ended and not self._number:
            self._number = self._switchboard.register(self)
            driver.opened()

    def _heard(self, number: int, message: FromHead) -> None:
        if number == self._number:
            self._driver.heard(message)

    def _say(self, message: FromNode) -> None:
        if self._number:
            self._loop.call_soon(self._head.tell, events.NodeSaid(self._number, message))

    def _stopped(self) -> None:
        number, self._number = self._number, 0
        self._loop.call_soon(self._switchboard.disconnect, number)
        self._stopping = asyncio.create_task(self._driver.stop())
        if LOCAL not in self._switchboard.drained:
            self._loop.call_soon(self.come_back)

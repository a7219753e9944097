"""The data cluster's process: requests are answered in turn, notices overtake answers, and all of it takes time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tocsin.model import control
from tocsin.simulate.cluster import DataCluster
from tocsin.simulate.network import Link
from tocsin.simulate.process import World

HOST = "data"


class DataHost:
    """Serves a data cluster's state, which outlives it, to brokers.

    As in the server: an Attach subscribes first and then says how far the channel is; the notice of what is executed
    meanwhile may be there before the answer. What an execution has found can be pulled before anybody is told of it,
    and those are told who hold it by then.
    """

    def __init__(self, world: World, cluster: DataCluster, answer_seconds: float = 0.005) -> None:
        self._world, self._cluster, self.answer_seconds = world, cluster, answer_seconds
        self.alive = True
        self._untold: dict[str, deque[tuple[int, list[int]]]] = {}
        self._brokers: dict[Link, str] = {}
        self._asked: dict[Link, deque[control.Request]] = {}
        world.network.listen(HOST, self._accept)

    def execute(self, channel: str, chosen: Callable[[int], bool]) -> None:
        """Runs a channel once, and tells the brokers that are connected."""
        if not self.alive or channel in self._cluster.absent:
            return
        found = self._cluster.run(channel, chosen)
        self._world.trace.event(self._world.clock.now, HOST, found, channel)
        untold = self._untold.setdefault(channel, deque())
        untold.append((self._cluster.execution[channel], found))
        if len(untold) == 1:
            self._later(self._tell, channel)

    def drop(self, channel: str) -> None:
        """Drops a channel, and tells the brokers that are connected."""
        if not self.alive or channel in self._cluster.absent:
            return
        notice = control.Dropped(channel, self._cluster.incarnation(channel))
        self._cluster.drop(channel)
        self._untold.pop(channel, None)
        for link in self._brokers:
            link.send(1, notice)

    def crash(self) -> None:
        """Ends at once; the state stays."""
        self.alive = False
        self._world.network.crash(HOST)

    def received(self, link: Link, message: Any) -> None:
        """A broker asks."""
        asked = self._asked[link]
        asked.append(message)
        if len(asked) == 1:
            self._begin(link)

    def lost(self, link: Link, code: int) -> None:  # noqa: ARG002
        """A broker is gone; its subscriptions stay."""
        del self._brokers[link], self._asked[link]

    def drained(self, link: Link) -> None:
        """Nothing waits for that."""

    def _tell(self, channel: str) -> None:
        """The notices of the channel's oldest execution that nobody was told of."""
        untold = self._untold.get(channel)
        if not untold:
            return
        number, found = untold.popleft()
        for link, broker in self._brokers.items() if self.alive else ():
            if held := [be for be in found if broker in self._cluster.attached.get(be, ())]:
                link.send(1, self._cluster.notice(channel, number, held))
        if untold:
            self._later(self._tell, channel)

    def _accept(self, link: Link, purpose: str) -> DataHost:
        self._brokers[link], self._asked[link] = purpose, deque()
        return self

    def _begin(self, link: Link) -> None:
        self._later(self._act, link, self._asked[link][0])

    def _act(self, link: Link, request: control.Request) -> None:
        if self.alive and link in self._brokers:
            self._world.trace.event(self._world.clock.now, HOST, request, self._brokers[link])
            self._later(self._answer, link, self._cluster.answer(self._brokers[link], request))

    def _answer(self, link: Link, answer: control.Message) -> None:
        if not self.alive or link not in self._brokers:
            return
        if isinstance(answer, control.Attached):
            answer = replace(answer, execution=self._cluster.execution.get(answer.channel, 0))
        self._send(link, deque(self._cluster.parts(answer)))

    def _send(self, link: Link, parts: deque[control.Message]) -> None:
        """Sends an answer, a part at a time, and goes on to the next question."""
        if not self.alive or link not in self._brokers:
            return
        link.send(1, parts.popleft())
        if parts:
            self._later(self._send, link, parts)
            return
        self._asked[link].popleft()
        if self._asked[link]:
            self._begin(link)

    def _later(self, call: Callable[..., None], *arguments: Any) -> None:
        if self.answer_seconds:
            self._world.clock.after(self._world.random.random() * self.answer_seconds, call, *arguments)
        else:
            call(*arguments)

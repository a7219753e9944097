"""The coordinator's process: its core, its brokers' links, those who ask it, and its disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from tocsin.coordinator import actions, answers, events
from tocsin.coordinator.core import CoordinatorCore
from tocsin.coordinator.store.memory import MemoryStore
from tocsin.coordinator.store.records import Change
from tocsin.errors import TocsinError
from tocsin.model import coordination
from tocsin.simulate.network import ABNORMAL, SimulatedConnection
from tocsin.simulate.process import CoreProcess, SimulatedWorld

HOST, LINK, ASK = "coordinator", "link", "ask"
_LOOK_SECONDS = 1.0


class CoordinatorHost(CoreProcess):
    """A coordinator from its start to its end. What it has stored outlives it; what it was about to store does not.

    Args:
        store_seconds: how long a batch takes to be stored, at most; batches are stored one after the other.
        decide_seconds: how long a plan takes, at most.
    """

    core: CoordinatorCore

    def __init__(
        self,
        world: SimulatedWorld,
        core: CoordinatorCore,
        store: MemoryStore,
        store_seconds: float = 0.01,
        decide_seconds: float = 0.5,
    ) -> None:
        super().__init__(world, HOST, core, events.Tick())
        self.decided: Callable[[events.Decided], None] | None = None
        self._store, self._keyring = store, store.keyring()
        self._store_seconds, self._decide_seconds = store_seconds, decide_seconds
        self._stored_at = 0.0
        self._numbers = count(1)
        self._links: dict[int, SimulatedConnection] = {}
        self._handles: dict[int, Callable[[answers.Answer | TocsinError], None]] = {}
        world.network.listen(HOST, self._accept)
        self._arm()

    def ask(self, request: events.Request, then: Callable[[answers.Answer | TocsinError], None]) -> None:
        """An operator on the same machine asks something."""
        handle = next(self._numbers)
        self._handles[handle] = then
        self.tell(replace(request, handle=handle))

    def carry_out(self, action: actions.Action) -> None:
        """Does what the core wants done."""
        match action:
            case actions.Send(link, message):
                if link in self._links:
                    self._links[link].send(1, message)
            case actions.StoreBatch(batch, changes):
                self._write(batch, changes)
            case actions.Reply(handle, answer):
                if handle in self._handles:
                    self._handles.pop(handle)(answer)
            case actions.Close(link):
                if link in self._links:
                    self._links.pop(link).close(1)
            case actions.Decide():
                seconds = self.world.random.random() * self._decide_seconds
                self.world.clock.after(seconds, self._decide, action)

    def _accept(self, link: SimulatedConnection, purpose: str) -> BrokerLink | Question:
        if purpose == ASK:
            return Question(self)
        number = next(self._numbers)
        self._links[number] = link
        return BrokerLink(self, number)

    def forget(self, number: int) -> None:
        """A broker's link is gone."""
        self._links.pop(number, None)
        self.tell(events.Lost(number))

    def _write(self, batch: int, changes: tuple[Change, ...]) -> None:
        clock = self.world.clock
        if not self._store_seconds:
            self._written(batch, changes)
            return
        self._stored_at = max(self._stored_at, clock.now) + self.world.random.random() * self._store_seconds
        clock.at(self._stored_at, self._written, batch, changes)

    def _written(self, batch: int, changes: tuple[Change, ...]) -> None:
        if self.alive:
            self._store.write(changes)
            # Its thread says so a little later, and a crash may come between.
            self.world.clock.after(0.0, self.tell, events.BatchStored(batch))
            self._watch()

    def _watch(self) -> None:
        """Notices after a while that tokens are no longer taken."""
        if self._store.keyring() is not self._keyring:
            self._keyring = self._store.keyring()
            seconds = self.world.random.random() * _LOOK_SECONDS
            self.world.clock.after(seconds, self.tell, events.Amended(self._keyring))

    def _decide(self, action: actions.Decide) -> None:
        if self.alive:
            decided = action.run()
            if self.decided:
                self.decided(decided)
            self.tell(decided)


class BlankStore(MemoryStore):
    """That of a coordinator which is never started again: nothing need be kept."""

    def write(self, changes: Sequence[Change]) -> None:
        """Nobody will ask."""


class BrokerLink:
    """A broker's link."""

    def __init__(self, process: CoordinatorHost, number: int) -> None:
        self._process, self._number = process, number

    def received(self, link: SimulatedConnection, message: coordination.FromBroker) -> None:  # noqa: ARG002
        """The broker says something."""
        beat = isinstance(message, coordination.Beat)
        self._process.tell(events.SignOfLife(self._number) if beat else events.Received(self._number, message))

    def lost(self, link: SimulatedConnection, code: int) -> None:  # noqa: ARG002
        """It is gone."""
        self._process.forget(self._number)

    def flushed(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""


class Question:
    """Somebody's request; the answer goes back on the same connection."""

    def __init__(self, process: CoordinatorHost) -> None:
        self._process = process

    def received(self, link: SimulatedConnection, message: events.Request) -> None:
        """The request is there."""
        self._process.ask(message, lambda answer: link.send(1, answer))

    def lost(self, link: SimulatedConnection, code: int) -> None:
        """Whoever asked does not wait for the answer."""

    def flushed(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""


class Asking:
    """The other side of a :class:`Question`: ``then`` gets the answer, or an error when the connection is lost."""

    def __init__(
        self,
        world: SimulatedWorld,
        host: str,
        request: events.Request,
        then: Callable[[answers.Answer | TocsinError], None],
    ) -> None:
        self._then: Callable[[Any], None] | None = then
        link = world.network.dial(host, HOST, ASK, self)
        link.when_open = lambda: link.send(0, request)

    def received(self, link: SimulatedConnection, message: answers.Answer | TocsinError) -> None:
        """The answer is there."""
        link.close(0)
        self._answer(message)

    def lost(self, link: SimulatedConnection, code: int = ABNORMAL) -> None:  # noqa: ARG002
        """There will be none."""
        self._answer(TocsinError("the coordinator does not answer"))

    def flushed(self, link: SimulatedConnection) -> None:
        """Nothing waits for that."""

    def _answer(self, answer: answers.Answer | TocsinError) -> None:
        then, self._then = self._then, None
        if then:
            then(answer)

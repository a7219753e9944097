"""The load generator's people: they log in and subscribe by the timetable, tell where they are, and count notes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

import tocsin
from tocsin.client.coordinator import register
from tocsin.client.notices import Kind
from tocsin.client.subscriber import Subscriber
from tocsin.client.subscription import Subscription
from tocsin.errors import TocsinError
from tocsin.experiment.testbed.ledger import Ledger
from tocsin.experiment.testbed.timetable import Visit
from tocsin.local.network import TOKEN

LOCATIONS: Final = "locations"
_AT_ONCE: Final = 20

Location = dict[str, Any]
Until = Callable[[float], Coroutine[Any, Any, None]]
"""Waits for a second of the run."""


class People:
    """All subscribers of a run, as a context: at its end they disconnect."""

    def __init__(self, coordinator: str, visits: Sequence[Visit], ledger: Ledger) -> None:
        self._coordinator, self._visits, self._ledger = coordinator, visits, ledger
        self._tokens: dict[str, str] = {}
        self._connected: dict[str, Subscriber] = {}
        self._publishing: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = AsyncExitStack()
        self._where: dict[str, Location] = {}

    async def __aenter__(self) -> Self:
        door = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._register(visit.name, door) for visit in self._visits))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        everything = [*self._tasks, *self._publishing.values()]
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
        await self._open.aclose()

    def begin(self, until: Until) -> None:
        """Everybody follows the timetable from now on."""
        for visit in self._visits:
            self._do(self._visit(visit, until))

    def walk(self, locations: Sequence[Location]) -> None:
        """Where everybody is now. Who is connected says so, unless what was said last has no answer yet."""
        self._where = {location["userId"]: location for location in locations}
        for name, me in self._connected.items():
            last = self._publishing.get(name)
            if last is None or last.done():
                self._publishing[name] = asyncio.create_task(self._publish(name, me))

    async def _register(self, name: str, door: asyncio.Semaphore) -> None:
        async with door:
            self._tokens[name] = await register(self._coordinator, name, TOKEN)

    async def _visit(self, visit: Visit, until: Until) -> None:
        await until(visit.login)
        where = self._where[visit.name]
        me = tocsin.connect(self._coordinator, self._tokens[visit.name], place=(where["x"], where["y"]))
        try:
            self._connected[visit.name] = await self._open.enter_async_context(me)
            self._do(self._count_moves(visit.name, me))
            for at, interest in visit.interests:
                await until(at)
                subscription = await me.subscribe(interest.channel, parameters=interest.params)
                self._ledger.hold(visit.name, subscription)
                self._do(self._read(visit.name, subscription))
        except TocsinError as error:
            self._ledger.complain(f"{visit.name}: {error}")

    async def _read(self, name: str, subscription: Subscription) -> None:
        try:
            async for note in subscription:
                self._ledger.receive(name, note)
        except TocsinError as error:
            self._ledger.complain(f"{name}, {subscription.channel}: {error}")

    async def _count_moves(self, name: str, me: Subscriber) -> None:
        try:
            async for notice in me.events():
                self._ledger.moved += notice.kind is Kind.MOVED
        except TocsinError as error:
            self._ledger.complain(f"{name}: {error}")

    async def _publish(self, name: str, me: Subscriber) -> None:
        try:
            published = await me.publish(LOCATIONS, [self._where[name]])
        except TocsinError as error:
            self._ledger.complain(f"{name} could not publish: {error}")
        else:
            self._ledger.locations += published.accepted

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nothing that goes wrong in a task is to pass for notifications that did not come."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._ledger.complain(f"a fault in the load generator: {type(error).__name__}: {error}")

"""One of the people: connected with the client library, subscribed, and telling every second where they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import tocsin
from tocsin.apps.emergency import Interest
from tocsin.client.coordinator import register
from tocsin.client.notices import Kind
from tocsin.client.subscriber import Subscriber
from tocsin.client.subscription import Subscription
from tocsin.demo.tally import Tally
from tocsin.demo.telling import Heard, Moved, Trouble
from tocsin.errors import TocsinError
from tocsin.local.network import TOKEN

LOCATIONS: Final = "locations"
Tell = Callable[[Heard | Moved | Trouble], None]


class Person:
    """Somebody called ``name`` with ``interests``, at ``place`` to begin with.

    What can go wrong when entering is the client library's: it is raised as it is. Later trouble is told.
    """

    def __init__(
        self, name: str, interests: Sequence[Interest], place: tuple[float, float], tally: Tally, tell: Tell
    ) -> None:
        self.name, self._interests, self._place = name, interests, place
        self._tally, self._tell = tally, tell
        self._open = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._publication: asyncio.Task[None] | None = None
        self._me: Subscriber | None = None
        self.subscriptions: list[Subscription] = []

    async def enter(self, coordinator: str) -> None:
        """Registers, connects and subscribes; from then on what comes is counted."""
        # An operator may register anybody, also who was there in an earlier run.
        token = await register(coordinator, self.name, TOKEN)
        me = await self._open.enter_async_context(tocsin.connect(coordinator, token, place=self._place))
        self._me = me
        self._do(self._watch(me))
        for interest in self._interests:
            subscription = await me.subscribe(interest.channel, parameters=interest.params)
            self.subscriptions.append(subscription)
            self._tally.hold(self.name, subscription.number)
            self._do(self._read(subscription))

    def walk(self, location: dict[str, Any]) -> None:
        """Publishes where they are, unless the last place has no answer yet: only the newest is of any use."""
        if self._publication and not self._publication.done():
            self._tally.withheld += 1
        else:
            self._publication = asyncio.create_task(self._publish(location))

    async def leave(self) -> None:
        """Disconnects. The subscriptions stay, as they would when a phone is switched off."""
        await self._open.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _publish(self, location: dict[str, Any]) -> None:
        assert self._me
        try:
            published = await self._me.publish(LOCATIONS, [location])
        except TocsinError as error:
            self._tell(Trouble(f"{self.name} could not publish: {error}"))
        else:
            self._tally.published[LOCATIONS] += published.accepted

    async def _read(self, subscription: Subscription) -> None:
        try:
            async for note in subscription:
                self._tally.receive(self.name, note)
                gravest = max(note.rows, key=lambda row: row["severity"] or 0)
                heard = (self.name, subscription.channel, subscription.parameters, len(note.rows), gravest)
                self._tell(Heard(*heard))
        except TocsinError as error:
            self._tell(Trouble(f"{self.name}, {subscription.channel}: {error}"))

    async def _watch(self, me: Subscriber) -> None:
        at = ""
        try:
            async for notice in me.events():
                if notice.kind is Kind.MOVED:
                    self._tally.moved += 1
                    self._tell(Moved(self.name, at, notice.url or ""))
                self._tally.lost_connections += notice.kind is Kind.RECONNECTING
                at = notice.url or at
        except TocsinError as error:
            self._tell(Trouble(f"{self.name}: {error}"))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nothing that goes wrong in a task is to pass for notifications that did not come."""
        if not task.cancelled() and (error := task.exception()):
            self._tell(Trouble(f"{self.name}: a fault in the demo: {type(error).__name__}: {error}"))

"""From somebody's login to the logout: one connection of the client library, and what comes of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from tocsin.apps.emergency import Interest
from tocsin.client.note import Note
from tocsin.client.notices import NoticeKind
from tocsin.client.subscriber import Subscriber
from tocsin.client.subscription import Subscription
from tocsin.crowd.counts import CrowdCounts
from tocsin.crowd.messages import CrowdTrouble, PersonMoved
from tocsin.errors import TocsinError

LOCATIONS: Final = "locations"


@dataclass(frozen=True)
class Observer:
    """Who is told what happens to people: it is counted, some of it is told, and notes are heard."""

    counts: CrowdCounts
    tell: Callable[[PersonMoved | CrowdTrouble], None]
    hear: Callable[[str, Subscription, Note], None]


class Visit:
    """One of ``name``."""

    def __init__(self, name: str, observer: Observer) -> None:
        self._name, self._observer, self._counts = name, observer, observer.counts
        self._subscriptions: dict[tuple[object, ...], Subscription] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._publication: asyncio.Task[None] | None = None
        self._open = AsyncExitStack()
        self._me: Subscriber | None = None
        self._over = False

    @property
    def numbers(self) -> list[int]:
        """Of the BE subscriptions."""
        return [subscription.number for subscription in self._subscriptions.values()]

    async def begin(self, me: Subscriber) -> None:
        """Connects."""
        self._me = await self._open.enter_async_context(me)
        self._do(self._watch(me))

    async def subscribe(self, interest: Interest) -> None:
        """Subscribes; from then on what comes is counted."""
        assert self._me
        subscription = await self._me.subscribe(interest.channel, parameters=interest.params)
        self._subscriptions[_key(interest)] = subscription
        self._counts.hold(self._name, subscription.number, subscription.taken)
        self._do(self._read(subscription))

    async def unsubscribe(self, interest: Interest) -> None:
        """Gives a subscription up; nothing of it comes from here on."""
        subscription = self._subscriptions.pop(_key(interest), None)
        if subscription:
            self._counts.give_up(self._name, subscription.number)
            await subscription.close()

    def publish(self, location: dict[str, Any], due: float) -> None:
        """Publishes a location, unless the last one has no answer yet: only the newest is of any use."""
        if self._publication and not self._publication.done():
            self._counts.withheld += 1
            return
        self._counts.late.add(time.monotonic() - due)
        self._publication = asyncio.create_task(self._publish(location))

    async def end(self) -> None:
        """Disconnects. What was not yet read is not acknowledged, and comes again in the next visit."""
        self._over = True
        await self._open.aclose()
        tasks = [*self._tasks, *([self._publication] if self._publication else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _publish(self, location: dict[str, Any]) -> None:
        assert self._me
        began = time.monotonic()
        try:
            published = await self._me.publish(LOCATIONS, [location])
        except TocsinError as error:
            self._complain(f"{self._name} could not publish: {error}")
        else:
            self._counts.published[LOCATIONS] += published.accepted
            self._counts.answers.add(time.monotonic() - began)

    async def _read(self, subscription: Subscription) -> None:
        try:
            async for note in subscription:
                if self._over:
                    return
                self._counts.receive(self._name, note)
                self._observer.hear(self._name, subscription, note)
        except TocsinError as error:
            self._complain(f"{self._name}, {subscription.channel}: {error}")

    async def _watch(self, me: Subscriber) -> None:
        at = ""
        try:
            async for notice in me.events():
                if notice.kind is NoticeKind.MOVED:
                    self._counts.moved += 1
                    self._observer.tell(PersonMoved(self._name, at, notice.url or ""))
                self._counts.lost_connections += notice.kind is NoticeKind.RECONNECTING
                at = notice.url or at
        except TocsinError as error:
            self._complain(f"{self._name}: {error}")

    def _complain(self, what: str) -> None:
        if not self._over:
            self._observer.tell(CrowdTrouble(what))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nothing that goes wrong in a task is to pass for notifications that did not come."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._complain(f"{self._name}: a fault in the load generator: {type(error).__name__}: {error}")


def _key(interest: Interest) -> tuple[object, ...]:
    return interest.channel, *interest.params.values()

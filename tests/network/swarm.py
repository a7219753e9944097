"""Many subscribers in the process of the test, each a program of a few lines that writes down what it is told."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final

import msgspec

import tocsin
from tests.network.checker import Run, Seen, digest
from tests.network.network import Network
from tests.network.record import Record
from tests.network.reports import Interest, interests
from tests.waiting import until_async
from tocsin.client.rules import Rules
from tocsin.client.subscriber import Subscriber
from tocsin.client.subscription import Subscription

# Patient enough for a machine that is shared, and quick to notice that a connection is half open.
RULES: Final = Rules(ping_seconds=2.0, pong_seconds=3.0, longest_wait=2.0)
_AT_ONCE: Final = 25


class Person:
    """A subscriber's program: it subscribes, and records every note. Each start of it is a run of its own."""

    def __init__(
        self, network: Network, record: Record, name: str, token: str, wanted: Sequence[Interest], live: bool
    ) -> None:
        self.name = name
        self._network, self._record, self._token, self._live = network, record, token, live
        self._wanted = dict(wanted)
        self._runs = 0
        self._stopping, self._ready = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._me: Subscriber | None = None
        self._subscriptions: dict[str, Subscription] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of its subscriptions, by channel."""
        return {channel: subscription.number for channel, subscription in self._subscriptions.items()}

    async def start(self) -> None:
        """Goes online and subscribes; returns when all subscriptions are confirmed."""
        self._stopping, self._ready = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._run())
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        self.check()

    async def stop(self) -> None:
        """Goes offline in an orderly way; the subscriptions stay."""
        self._stopping.set()
        if self._task is not None:
            await self._task
            self._task = None

    def check(self) -> None:
        """Raises what has ended the program, if something has."""
        if self._task is not None and self._task.done():
            self._task.result()

    async def ask(self, channel: str) -> None:
        """Subscribes to what it wants of a channel."""
        assert self._me is not None
        subscription = await self._me.subscribe(channel, live=self._live, **self._wanted[channel])
        self._record.held(self.name, subscription.number, channel, subscription.taken)
        self._subscriptions[channel] = subscription
        self._readers[channel] = asyncio.create_task(self._read(subscription, self._runs))

    async def give_up(self, channel: str) -> None:
        """Unsubscribes from a channel."""
        subscription = self._subscriptions.pop(channel)
        await subscription.close()
        await self._readers.pop(channel)
        self._record.given_up(self.name, subscription.number)

    async def _run(self) -> None:
        self._runs += 1
        self._record.runs.append(Run(self.name, self._runs))
        async with tocsin.connect(self._network.url, token=self._token, rules=RULES) as self._me:
            for channel in self._wanted:
                await self.ask(channel)
            self._ready.set()
            await self._stopping.wait()
        await asyncio.gather(*self._readers.values())
        if self._live:
            for number in self.numbers.values():
                self._record.given_up(self.name, number)

    async def _read(self, subscription: Subscription, run: int) -> None:
        async for note in subscription:
            payload = digest(msgspec.json.decode(note.payload))
            seen = Seen(self.name, note.subscription, note.execution, payload, run, note.recovered, time.time())
            self._record.seen.append(seen)


class Swarm:
    """Some hundred people."""

    def __init__(self, network: Network, record: Record, random: Random, prefix: str) -> None:
        self._network, self._record, self._random, self._prefix = network, record, random, prefix
        self.people: list[Person] = []
        self.names: list[str] = []

    async def add(self, number: int, live: bool = False) -> list[Person]:
        """So many people more come, subscribe and listen."""
        first = len(self.people)
        added = [await self._person(f"{self._prefix}-{count}", live) for count in range(first, first + number)]
        self.people += added
        self.names += [person.name for person in added]
        gate = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._started(person, gate) for person in added))
        return added

    async def told(self, notes: int = 1) -> None:
        """Waits until everybody has seen so many notes from now on."""
        start = len(self._record.seen)

        async def all_told() -> bool:
            self.check()
            counts = Counter(seen.subscriber for seen in self._record.seen[start:])
            return all(counts[name] >= notes for name in self.names)

        await until_async(all_told, f"{notes} notes for everybody")

    async def told_some(self, notes: int) -> None:
        """Waits until so many notes more were seen, by whomever."""
        start = len(self._record.seen)

        async def enough() -> bool:
            self.check()
            return len(self._record.seen) >= start + notes

        await until_async(enough, f"{notes} notes")

    def check(self) -> None:
        """Raises what has ended somebody's program."""
        for person in self.people:
            person.check()

    async def stop(self) -> None:
        """Everybody goes."""
        await asyncio.gather(*(person.stop() for person in self.people))

    async def _person(self, name: str, live: bool) -> Person:
        token = await self._network.register(name)
        return Person(self._network, self._record, name, token, interests(self._random, name), live)

    async def _started(self, person: Person, gate: asyncio.Semaphore) -> None:
        async with gate:
            await person.start()


@asynccontextmanager
async def swarm(network: Network, record: Record, random: Random, prefix: str) -> AsyncIterator[Swarm]:
    """A swarm that is sent home in the end."""
    made = Swarm(network, record, random, prefix)
    try:
        yield made
    finally:
        await made.stop()

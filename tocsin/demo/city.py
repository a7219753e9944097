"""The process in which the people of the demo live, and the publishers who report emergencies.

It does what it is told on standard input, and tells on standard output. It ends when its input does.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Final

import httpx
import msgspec
import uvloop

from tocsin.apps.emergency import Second, Traces, World
from tocsin.demo.person import Person
from tocsin.demo.tally import Tally
from tocsin.demo.telling import (
    Account,
    Begin,
    Gathered,
    Gathering,
    Heard,
    Hush,
    Ledger,
    Moved,
    Order,
    Telling,
    Trouble,
)
from tocsin.errors import TocsinError
from tocsin.local.network import TOKEN

REPORTS: Final = "reports"
# How many people connect at the same time.
AT_ONCE: Final = 25
# In so many parts of each second everybody's place is published, a share of the people in each.
PARTS: Final = 10
# A sample of what people hear is enough to show.
HEARD_SECONDS: Final = 0.5
_ORDERS: Final = msgspec.json.Decoder(Order)


class Plan(msgspec.Struct, frozen=True):
    """Which city, and where its network is."""

    coordinator: str
    data: str
    people: int
    seed: int
    trace: str | None = None

    def world(self, start: datetime) -> World:
        """The city, whose second 0 is at ``start``."""
        movement = Traces(Path(self.trace)) if self.trace else None
        return World(self.seed, people=self.people, start=start, movement=movement)


class City:
    """The people and publishers of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._tally = plan, Tally()
        self._people: list[Person] = []
        self._heard_at = 0.0
        self._living: asyncio.Task[None] | None = None
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self._data = httpx.AsyncClient(base_url=plan.data, headers=headers, timeout=60, trust_env=False)

    async def run(self, orders: asyncio.StreamReader) -> None:
        """Gathers the people, then follows orders until there are no more."""
        ticking = asyncio.create_task(self._tick())
        try:
            await self._gather()
            async for line in orders:
                self._obey(_ORDERS.decode(line))
        finally:
            ticking.cancel()
            await self._quiet()
            await asyncio.gather(*(person.leave() for person in self._people))
            await self._data.aclose()

    def _obey(self, order: Order) -> None:
        match order:
            case Begin():
                self._living = asyncio.create_task(self._live())
            case Hush():
                if self._living:
                    self._living.cancel()
            case Account():
                tell(self._tally.figures())
                tell(Ledger(self._tally.received))

    async def _gather(self) -> None:
        world = self._plan.world(datetime.now(UTC))
        first = next(world.seconds())
        places = {location["userId"]: (location["x"], location["y"]) for location in first.locations}
        wanted = {name: list(theirs) for name, theirs in groupby(world.interests(), key=lambda i: i.subscriber)}
        everybody = [Person(name, wanted[name], places[name], self._tally, self._say) for name in world.subscribers]
        door = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._enter(person, door) for person in everybody))
        numbers = [subscription.number for person in self._people for subscription in person.subscriptions]
        tell(Gathered(len(self._people), len(numbers), len(set(numbers))))

    async def _enter(self, person: Person, door: asyncio.Semaphore) -> None:
        async with door:
            self._people.append(person)
            await person.enter(self._plan.coordinator)

    async def _live(self) -> None:
        """The world in its own time: each second of it once that second has come."""
        world = self._plan.world(datetime.now(UTC).replace(microsecond=0))
        began = time.time()
        for second in world.seconds():
            await asyncio.sleep(began + second.at - time.time())
            await asyncio.gather(self._walk(second), self._report(second))

    async def _walk(self, second: Second) -> None:
        began = asyncio.get_running_loop().time()
        places = {location["userId"]: location for location in second.locations}
        for part in range(PARTS):
            await asyncio.sleep(began + part / PARTS - asyncio.get_running_loop().time())
            for person in self._people[part::PARTS]:
                person.walk(places[person.name])

    async def _report(self, second: Second) -> None:
        if not second.reports:
            return
        try:
            answer = await self._data.post(f"/feeds/{REPORTS}", json=second.reports)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            tell(Trouble(f"reports could not be published: {error}"))
        else:
            self._tally.published[REPORTS] += answer.json()["accepted"]

    async def _quiet(self) -> None:
        if self._living:
            self._living.cancel()
            await asyncio.gather(self._living, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            tell(self._tally.figures() if self._living else Gathering(len(self._people)))

    def _say(self, telling: Heard | Moved | Trouble) -> None:
        now = time.monotonic()
        if isinstance(telling, Heard):
            if now < self._heard_at + HEARD_SECONDS:
                return
            self._heard_at = now
        tell(telling)


def tell(telling: Telling) -> None:
    """Says something to whoever started this process."""
    sys.stdout.buffer.write(msgspec.json.encode(telling) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Runs the city of the plan that is the only argument. What goes wrong is one line on standard error."""
    plan = msgspec.json.decode(sys.argv[1], type=Plan)
    # The terminal's Ctrl-C is for whoever started this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(plan))
    except TocsinError as error:
        sys.exit(f"error: {error}")


async def _run(plan: Plan) -> None:
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    await City(plan).run(orders)


if __name__ == "__main__":
    main()

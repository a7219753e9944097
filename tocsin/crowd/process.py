"""One process of people. It does what it is told on standard input, and tells on standard output; it ends when its
input does.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

import msgspec
import uvloop

from tocsin.apps.emergency import Interest
from tocsin.client.coordinator import Location, UnreachableError
from tocsin.client.note import Note
from tocsin.client.subscription import Subscription
from tocsin.crowd.counts import CrowdCounts
from tocsin.crowd.messages import (
    Acknowledged,
    Begin,
    CompareReceipts,
    CrowdTrouble,
    Gathered,
    Heard,
    Hush,
    Order,
    Telling,
)
from tocsin.crowd.plan import CrowdPlan, CrowdShare
from tocsin.crowd.timetable import Step, StepKind, timetable
from tocsin.crowd.visit import Observer
from tocsin.crowd.visitor import Visitor
from tocsin.errors import TocsinError, UnavailableError
from tocsin.tasks import until_one_ends

# How many people of all processes connect at the same time.
AT_ONCE: Final = 25
# In so many parts of each second everybody's location is published, a share of the people in each.
PARTS: Final = 20
# A sample of what people hear is enough to show.
HEARD_SECONDS: Final = 0.5
# How often it is looked how late the event loop is.
LOOK_SECONDS: Final = 0.1
_LONGEST_ORDER: Final = 1 << 28
_ORDERS: Final = msgspec.json.Decoder(Order)


class CrowdProcess:
    """The people of a share of a plan."""

    def __init__(self, plan: CrowdPlan, share: CrowdShare, tell: Callable[[Telling], None]) -> None:
        self._plan, self._share, self._tell = plan, share, tell
        self._counts = CrowdCounts()
        self._world = plan.world(datetime.now(UTC))
        self._numbers = share.people(len(self._world.subscribers))
        observer = Observer(self._counts, tell, self._hear)
        names = [self._world.subscribers[number] for number in self._numbers]
        self._people = [Visitor(name, plan.coordinator, plan.token, observer) for name in names]
        self._where: list[dict[str, Any]] = next(self._world.locations(self._numbers))
        self._heard_at = 0.0
        self._living: list[asyncio.Task[None]] = []

    async def run(self, orders: asyncio.StreamReader) -> None:
        """Gathers the people and follows orders until there are no more."""
        try:
            await until_one_ends(self._listen(orders), self._gather(), self._tick(), self._look())
        finally:
            for task in self._living:
                task.cancel()
            await asyncio.gather(*self._living, return_exceptions=True)
            await asyncio.gather(*(person.leave() for person in self._people))

    async def _listen(self, orders: asyncio.StreamReader) -> None:
        async for line in orders:
            self._obey(_ORDERS.decode(line))

    def _obey(self, order: Order) -> None:
        match order:
            case Begin(at):
                self._begin(at)
            case Acknowledged(reports, at):
                self._counts.waits.acknowledge(reports, at)
            case Hush():
                for task in self._living:
                    task.cancel()
            case CompareReceipts(found):
                self._tell(self._counts.figures())
                there = {person.name: person.numbers for person in self._people if person.there}
                self._tell(self._counts.compare(found, there))

    async def _gather(self) -> None:
        door = asyncio.Semaphore(max(AT_ONCE // self._share.of, 1))
        wanted = _by_person(self._world.interests()) if self._plan.seconds is None else {}

        async def come(person: Visitor, location: Location) -> bool:
            async with door:
                return await self._come(person, location, wanted.get(person.name, []))

        came = await asyncio.gather(*map(come, self._people, map(_location, self._where)))
        self._tell(Gathered(sum(came), [number for person in self._people for number in person.numbers]))
        # Thousands of people are hundreds of thousands of objects: to look through them for garbage again and again
        # would hold everybody up for half a second each time.
        gc.collect()
        gc.freeze()
        # It is the orders that end everything.
        await asyncio.get_running_loop().create_future()

    async def _come(self, person: Visitor, location: Location, wanted: list[Interest]) -> bool:
        """Whether somebody has come. On a busy machine some may not, and the others go on without them."""
        try:
            await person.register()
            if self._plan.seconds is None:
                await person.enter(location)
            for interest in wanted:
                await person.subscribe(interest)
        except UnreachableError:
            raise
        except UnavailableError as error:
            self._tell(CrowdTrouble(f"{person.name} could not come: {error}"))
            return False
        return True

    def _begin(self, at: float) -> None:
        # The world is made anew, so that its records bear the time at which it begins.
        start = datetime.now(UTC).timestamp() + at - time.monotonic()
        self._world = self._plan.world(datetime.fromtimestamp(round(start), UTC))
        self._live(self._walk(at))
        if self._plan.seconds is not None:
            world, plan = self._world, self._plan
            steps = timetable(world.subscribers, world.interests(), plan.seconds or 0, plan.seed)
            for number, person in enumerate(self._people):
                self._live(self._follow(number, person, steps[person.name], at))

    def _live(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._living.append(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nothing that goes wrong here is to pass for something that the system did not do."""
        if not task.cancelled() and (error := task.exception()):
            self._tell(CrowdTrouble(f"a fault in the load generator: {type(error).__name__}: {error}"))

    async def _walk(self, began: float) -> None:
        """The world in its own time: each second of it once that second has come."""
        for second, where in enumerate(self._seconds()):
            self._where = where
            for part in range(PARTS):
                due = began + second + part / PARTS
                await _until(due)
                for number in range(part, len(self._people), PARTS):
                    self._people[number].walk(where[number], due)

    def _seconds(self) -> Iterator[list[dict[str, Any]]]:
        """Where they are in each second of the clock."""
        step = max(round(self._plan.speed), 1)
        until = None if self._plan.seconds is None else round(self._plan.seconds)
        return islice(self._world.locations(self._numbers), 0, until, step)

    async def _follow(self, number: int, person: Visitor, steps: list[Step], began: float) -> None:
        """The timetable of a person; what fails is told, and the next step is tried at its time."""
        for step in steps:
            await _until(began + step.at / self._plan.speed)
            try:
                await self._do(step, person, _location(self._where[number]))
            except TocsinError as error:
                self._tell(CrowdTrouble(f"{person.name}: {error}"))

    async def _do(self, step: Step, person: Visitor, location: Location) -> None:
        match step.kind:
            case StepKind.LOGIN:
                await person.enter(location)
            case StepKind.LOGOUT:
                self._counts.logouts += 1
                await person.leave()
            case StepKind.SUBSCRIBE if step.interest:
                await person.subscribe(step.interest)
            case StepKind.UNSUBSCRIBE if step.interest:
                await person.unsubscribe(step.interest)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._tell(self._counts.figures())

    async def _look(self) -> None:
        """How late the event loop is with what is due."""
        while True:
            due = time.monotonic() + LOOK_SECONDS
            await _until(due)
            if self._living:
                self._counts.lags.add(time.monotonic() - due)

    def _hear(self, who: str, subscription: Subscription, note: Note) -> None:
        now = time.monotonic()
        if now >= self._heard_at + HEARD_SECONDS * self._share.of:
            self._heard_at = now
            gravest = max(note.rows, key=lambda row: row.get("severity") or 0)
            self._tell(Heard(who, subscription.channel, subscription.parameters, len(note.rows), gravest))


def _by_person(interests: list[Interest]) -> dict[str, list[Interest]]:
    wanted: dict[str, list[Interest]] = {}
    for interest in interests:
        wanted.setdefault(interest.subscriber, []).append(interest)
    return wanted


def _location(location: dict[str, Any]) -> Location:
    return location["x"], location["y"]


async def _until(at: float) -> None:
    await asyncio.sleep(at - time.monotonic())


def tell(telling: Telling) -> None:
    """Says something to whoever started this process."""
    sys.stdout.buffer.write(msgspec.json.encode(telling) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Plays the share, the second argument, of the plan that is the first. What goes wrong is one line on standard
    error."""
    plan, share = msgspec.json.decode(sys.argv[1], type=CrowdPlan), msgspec.json.decode(sys.argv[2], type=CrowdShare)
    # The terminal's Ctrl-C is for whoever started this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(plan, share))
    except TocsinError as error:
        sys.exit(f"error: {error}")


async def _run(plan: CrowdPlan, share: CrowdShare) -> None:
    orders = asyncio.StreamReader(limit=_LONGEST_ORDER)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    await CrowdProcess(plan, share, tell).run(orders)


if __name__ == "__main__":
    main()

"""The processes of people, as whoever started them sees them."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from tocsin.crowd.messages import (
    Acknowledged,
    Begin,
    Compared,
    CompareReceipts,
    CrowdFigures,
    CrowdTrouble,
    Gathered,
    Heard,
    Hush,
    Order,
    PersonMoved,
    Telling,
    add_figures,
    merge_comparisons,
)
from tocsin.crowd.plan import CrowdPlan, CrowdShare, processes
from tocsin.crowd.publishers import Publishers
from tocsin.errors import UnavailableError
from tocsin.local.journal import Journal
from tocsin.local.leash import leash
from tocsin.local.running import told
from tocsin.tasks import until_one_ends

T = TypeVar("T")
Hear = Callable[[Heard | PersonMoved | CrowdTrouble], None]
# What everybody has missed is said in one line.
_LONGEST_LINE: Final = 1 << 28
_LEAVE_SECONDS: Final = 30.0
# A machine that is far too busy may take its time over what thousands have got.
_ANSWER_SECONDS: Final = 60.0
# So long after it is said they begin, all at the same time.
_NOTICE_SECONDS: Final = 1.0
_TELLINGS: Final = msgspec.json.Decoder(Telling)


class Member:
    """A process that plays so many people. What it said last is kept when it is gone."""

    def __init__(self, process: Process, journal: Journal, people: int) -> None:
        self._process, self._journal, self.people = process, journal, people
        self.figures = CrowdFigures()
        self.alive = True
        loop = asyncio.get_running_loop()
        self.gathered: asyncio.Future[Gathered] = loop.create_future()
        self.compared: asyncio.Future[Compared] = loop.create_future()

    def order(self, order: Order) -> None:
        """Tells it to do something, without waiting for one that does not listen; who is gone is told nothing."""
        assert self._process.stdin
        if self.alive:
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def compare(self, found: dict[int, list[int]]) -> Compared:
        """What its people have not got of what was found; nothing is owed to those who are gone.

        A process that does not answer is ended, and its people are gone.
        """
        if not self.alive:
            return Compared()
        self.compared = asyncio.get_running_loop().create_future()
        self.order(CompareReceipts(found))
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self.compared
        except TimeoutError:
            self._kill()
            return Compared()

    async def listen(self, hear: Hear) -> str:
        """Takes what it tells until it is gone; why it is."""
        assert self._process.stdout
        async for line in self._process.stdout:
            # Who is killed while speaking leaves half a line.
            if line.endswith(b"\n"):
                self._hear(_TELLINGS.decode(line), hear)
        self.alive = False
        _settle(self.gathered, Gathered(0, []))
        _settle(self.compared, Compared())
        status = await self._process.wait()
        return " ".join(self._journal.last(1)) or f"status {status}"

    async def dismiss(self) -> None:
        """Has the people leave, and waits until they have."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                # What they still say is read, so that they can say it.
                await self._process.communicate()
        except TimeoutError:
            self._kill()
            await self._process.wait()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    def _hear(self, telling: Telling, hear: Hear) -> None:
        match telling:
            case Gathered():
                _settle(self.gathered, telling)
            case CrowdFigures():
                self.figures = telling
            case Compared():
                _settle(self.compared, telling)
            case _:
                hear(telling)


class Crowd:
    """All processes of a plan. ``hear`` is told what happens.

    What can go wrong: a process dies (that is told, with how many people are gone; the others go on, and nothing is
    owed to those who are gone), or the last one does (UnavailableError from :meth:`watch`).
    """

    def __init__(self, plan: CrowdPlan, members: Sequence[Member], hear: Hear) -> None:
        self._members, self._hear = members, hear
        self._publishers = Publishers(plan, self._acknowledged)
        self._began: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._hushed = asyncio.Event()

    @property
    def processes(self) -> int:
        """How many there were."""
        return len(self._members)

    @property
    def figures(self) -> CrowdFigures:
        """What all of them have counted so far."""
        return add_figures([self._publishers.figures(), *(member.figures for member in self._members)])

    @property
    def missing(self) -> int:
        """How many people are gone with their process."""
        return sum(member.people for member in self._members if not member.alive)

    async def watch(self) -> None:
        """Takes part while they live: raises UnavailableError when all are gone."""
        await until_one_ends(self._listen(), self._publish())

    async def wait_gathered(self) -> Gathered:
        """Waits until all are ready."""
        parts = [await asyncio.shield(member.gathered) for member in self._members]
        return Gathered(sum(part.people for part in parts), [one for part in parts for one in part.subscriptions])

    def begin(self) -> float:
        """Has them live; the time of second 0."""
        at = time.monotonic() + _NOTICE_SECONDS
        self._order(Begin(at))
        self._began.set_result(at)
        return at

    def hush(self) -> None:
        """Nothing more is published, and nobody comes or goes."""
        self._hushed.set()
        self._order(Hush())

    async def compare(self, found: Mapping[int, Collection[int]]) -> Compared:
        """What they have not got of the executions that found something, by BE subscription."""
        ordered = {be: sorted(executions) for be, executions in found.items()}
        return merge_comparisons(await asyncio.gather(*(member.compare(ordered) for member in self._members)))

    async def _listen(self) -> None:
        whys = await asyncio.gather(*(self._listen_to(member) for member in self._members))
        raise UnavailableError(f"the people are gone: {whys[-1]}")

    async def _listen_to(self, member: Member) -> str:
        why = await member.listen(self._hear)
        if any(other.alive for other in self._members):
            self._hear(CrowdTrouble(f"{member.people:,} people are gone with the process that played them: {why}"))
        return why

    async def _publish(self) -> None:
        """Reports until all is quiet."""
        began = await self._began
        await until_one_ends(self._publishers.live(began), told(self._hushed))
        # It is the people whose end is the end.
        await asyncio.get_running_loop().create_future()

    def _acknowledged(self, telling: Acknowledged | CrowdTrouble) -> None:
        if isinstance(telling, Acknowledged):
            self._order(telling)
        else:
            self._hear(telling)

    def _order(self, order: Order) -> None:
        for member in self._members:
            member.order(order)


@asynccontextmanager
async def crowd(
    plan: CrowdPlan, everybody: int, logs: Path, hear: Hear, parts: int | None = None
) -> AsyncIterator[Crowd]:
    """While entered, the people are there; in the end they disconnect. ``everybody`` is how many the plan's world has.

    ``parts`` is the number of processes, by default what suits people and cores. Their logs are people-1.log, … in
    that directory.
    """
    parts = parts or processes(everybody, len(os.sched_getaffinity(0)))
    members: list[Member] = []
    try:
        for number in range(parts):
            share, log = CrowdShare(number, parts), logs / f"people-{number + 1}.log"
            members.append(await _start(plan, share, len(share.people(everybody)), log))
        yield Crowd(plan, members, hear)
    finally:
        await asyncio.gather(*(member.dismiss() for member in members))


async def _start(plan: CrowdPlan, share: CrowdShare, people: int, log: Path) -> Member:
    journal = Journal(log)
    # What is published straight to the data cluster is published from here; a command line is for all to see.
    words = (msgspec.json.encode(words).decode() for words in (replace(plan, data_token=""), share))
    with journal.open() as file:
        process = await create_subprocess_exec(
            *(sys.executable, "-m", "tocsin.crowd.process", *words),
            stdin=PIPE,
            stdout=PIPE,
            stderr=file,
            limit=_LONGEST_LINE,
            start_new_session=True,
            preexec_fn=leash(),
        )
    return Member(process, journal, people)


def _settle(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)

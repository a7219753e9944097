"""The process of the people, as the demo sees it: orders go in, tellings come out."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from tocsin.demo.city import Plan
from tocsin.demo.telling import Order, Telling
from tocsin.errors import UnavailableError
from tocsin.local.journal import Journal
from tocsin.local.leash import leash

_TELLINGS: Final = msgspec.json.Decoder(Telling)
# What everybody received is said in one line.
_LONGEST_LINE: Final = 1 << 28
_LEAVE_SECONDS: Final = 30.0


class People:
    """A running process of people; iterating gives what it tells, and raises UnavailableError when it ends."""

    def __init__(self, process: Process, journal: Journal) -> None:
        self._process, self._journal = process, journal

    async def order(self, order: Order) -> None:
        """Tells them to do something."""
        assert self._process.stdin
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        await self._process.stdin.drain()

    async def tellings(self) -> AsyncIterator[Telling]:
        """What they tell, from now on."""
        assert self._process.stdout
        async for line in self._process.stdout:
            yield _TELLINGS.decode(line)
        why = " ".join(self._journal.last(1)) or f"status {await self._process.wait()}"
        raise UnavailableError(f"the people of the demo are gone: {why}")


@asynccontextmanager
async def people(plan: Plan, log: Path) -> AsyncIterator[People]:
    """While entered, they are there; in the end they disconnect."""
    journal = Journal(log)
    with journal.open() as file:
        process = await create_subprocess_exec(
            *(sys.executable, "-m", "tocsin.demo.city", msgspec.json.encode(plan).decode()),
            stdin=PIPE,
            stdout=PIPE,
            stderr=file,
            limit=_LONGEST_LINE,
            start_new_session=True,
            preexec_fn=leash(),
        )
    try:
        yield People(process, journal)
    finally:
        await _dismiss(process)


async def _dismiss(process: Process) -> None:
    assert process.stdin
    process.stdin.close()
    try:
        async with asyncio.timeout(_LEAVE_SECONDS):
            # What they still say is read, so that they can say it.
            await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

"""One process of the network: started, asked whether it is ready, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process, create_subprocess_exec
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import httpx
import msgspec

from tocsin.client.operator import HealthProbe
from tocsin.errors import UnavailableError
from tocsin.local.journal import Journal
from tocsin.local.leash import leash
from tocsin.local.part import Part
from tocsin.model.messages import BareHealth, Health

_LOOK_SECONDS: Final = 0.25
_KILLED_SECONDS: Final = 10.0
_SHOWN_LINES: Final = 10


class DidNotStartError(UnavailableError):
    """A process that ended, or had said nothing for too long, before it was ready; with the last lines of its log."""

    def __init__(self, name: str, what: str, journal: Journal) -> None:
        lines = journal.last(_SHOWN_LINES)
        self.sentence = f"{name} {what}; its log is {journal.path}"
        self.lines = [line for line in lines if line.strip()]
        super().__init__(self.sentence)


class Child:
    """A part, and the process it is at the moment. It ends when this process does, however that comes about."""

    def __init__(self, part: Part, probe: HealthProbe) -> None:
        self.part, self.journal, self._probe = part, Journal(part.log), probe
        self._process: Process | None = None

    @property
    def was_started(self) -> bool:
        """Whether there was ever a process."""
        return self._process is not None

    @property
    def running(self) -> bool:
        """Whether there is a process, as far as anyone was told."""
        return self._process is not None and self._process.returncode is None

    @property
    def id(self) -> int:
        """The id of the process at hand, or of the last one there was."""
        assert self._process is not None, "not started yet"
        return self._process.pid

    async def start(self) -> None:
        """Starts it, in a session of its own so that a terminal's Ctrl-C does not reach it; returns at once."""
        with self.journal.open() as log:
            self._process = await create_subprocess_exec(
                *self.part.arguments,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.part.environment},
                start_new_session=True,
                preexec_fn=leash(),
            )

    async def answers(self) -> None:
        """Waits until it answers at all; raises DidNotStartError."""
        await self._until(self._heard)

    async def ready(self) -> None:
        """Waits until it says that it is ready; raises DidNotStartError, or UnavailableError with its own reason."""
        await self._until(self._healthy)

    async def wait(self) -> str:
        """Waits for its end, and says how it was."""
        assert self._process is not None, "not started yet"
        return _ending(await self._process.wait())

    async def stop(self) -> bool:
        """Asks it to end, and waits; False when it had to be killed."""
        if not self.running:
            return True
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.wait(), self.part.stop_seconds)
        except TimeoutError:
            await self.kill()
            return False
        return True

    async def kill(self) -> None:
        """Ends it at once, with all that it started."""
        # Once it has ended, its number may be another's.
        if self._process is None or not self.running:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _KILLED_SECONDS)

    async def close(self) -> None:
        """Asks it no more."""
        await self._probe.aclose()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(self.part.ready_seconds):
                while not await condition():
                    await self._pause()
        except TimeoutError:
            what = f"was not ready within {self.part.ready_seconds:g} s"
            raise DidNotStartError(self.part.name, what, self.journal) from None

    async def _pause(self) -> None:
        try:
            ending = await asyncio.wait_for(self.wait(), _LOOK_SECONDS)
        except TimeoutError:
            return
        raise DidNotStartError(self.part.name, ending, self.journal)

    async def _heard(self) -> bool:
        if self.part.url.startswith("tcp:"):
            return await _takes_connections(self.part.url)
        return await self._health() is not None

    async def _healthy(self) -> bool:
        if self.part.url.startswith("tcp:"):
            return await self._heard()
        response = await self._health()
        if response is None:
            return False
        if not response.is_success:
            return self.part.stands_by and _stands_by(response)
        return not self.part.needs_spark or _has_spark(response)

    async def _health(self) -> httpx.Response | None:
        try:
            return await self._probe.ask()
        except UnavailableError:
            return None


async def _takes_connections(url: str) -> bool:
    address = httpx.URL(url)
    try:
        _, writer = await asyncio.open_connection(address.host, address.port)
    except OSError:
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


def _stands_by(response: httpx.Response) -> bool:
    try:
        return msgspec.json.decode(response.content, type=BareHealth).status == "standby"
    except msgspec.MsgspecError:
        return False


def _has_spark(response: httpx.Response) -> bool:
    """Whether Spark is there; a data cluster without it goes on, but raises here what it says."""
    health = msgspec.json.decode(response.content, type=Health)
    if health.status == "degraded" and not health.spark:
        raise UnavailableError("; ".join(health.problems))
    return health.spark


def _ending(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"

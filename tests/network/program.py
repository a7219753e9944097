"""A subscriber in a process of its own, as the test that starts and kills it sees it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.process import ROOT, DiedError
from tests.network.checker import Run, Seen
from tests.network.record import Record
from tests.network.reports import Interest
from tests.waiting import SECONDS, until_async


class Program:
    """Runs :mod:`tests.network.subscriber`, and writes down what it says. Each start of it is a run of its own.

    Args:
        coordinator: its URL.
        prefix: a command that becomes the one it is given, in a surrounding of its own.
    """

    def __init__(
        self,
        coordinator: str,
        record: Record,
        name: str,
        token: str,
        wanted: list[Interest],
        log: Path,
        prefix: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._coordinator, self._record, self._token, self._wanted, self._log = coordinator, record, token, wanted, log
        self._prefix = tuple(prefix)
        self._run = -1
        self._process: Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._lines: list[dict[str, Any]] = []

    async def start(self) -> None:
        """Starts it; returns when it has what it wants."""
        self._run += 1
        self._record.runs.append(Run(self.name, self._run))
        self._lines = []
        command = [*self._prefix, sys.executable, "-m", "tests.network.subscriber", self._coordinator, self._token]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, json.dumps(self._wanted), stdout=PIPE, stderr=log, env=environment
            )
        self._reader = asyncio.create_task(self._read())
        await self.says(lambda lines: sum("held" in line for line in lines) == len(self._wanted), "its subscriptions")

    async def kill(self) -> None:
        """Ends it as a crash does; what it said before is written down."""
        assert self._process is not None
        assert self._reader is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reader

    async def says(
        self, condition: Callable[[list[dict[str, Any]]], bool], what: str, seconds: float = SECONDS
    ) -> None:
        """Waits until what it has said in this run meets a condition."""

        async def met() -> bool:
            assert self._process is not None
            if self._process.returncode is not None:
                raise DiedError(f"{self.name} ended with status {self._process.returncode}; see {self._log}")
            return condition(self._lines)

        await until_async(met, f"{what}, from {self.name}", seconds)

    async def told(self, seconds: float = SECONDS) -> None:
        """Waits until it has seen another note."""
        seen = len(self._record.seen)
        await self.says(lambda _: len(self._record.seen) > seen, "another note", seconds)

    async def noticed(self, kind: str) -> None:
        """Waits until its connection's latest notice is of this kind."""
        await self.says(lambda lines: [line["notice"] for line in lines if "notice" in line][-1:] == [kind], kind)

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            said = json.loads(line)
            self._lines.append(said)
            if "held" in said:
                self._record.held(self.name, said["held"], said["channel"], said["since"])
            elif "execution" in said:
                self._record.seen.append(Seen(self.name, run=self._run, **said))

"""A real ``tocsin coordinator`` or ``tocsin broker`` in a process of its own: started, killed, stopped, started again.

The waits leave the event loop free, since the subscribers live in it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

from tests.e2e.process import ROOT, START_SECONDS, STOP_SECONDS, DiedError
from tests.waiting import until_async


class ServerProcess:
    """One server, on a port that it keeps.

    Args:
        command: what comes after ``tocsin`` and its settings.
        settings: by their keys.
        log: where everything goes that it prints, of one start after the other.
    """

    def __init__(self, name: str, command: Sequence[str], settings: Mapping[str, object], port: int, log: Path) -> None:
        self.name, self.port, self.log = name, port, log
        self._command, self._settings = tuple(command), dict(settings)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.poll() is None

    def spawn(self) -> None:
        """Begins to start; returns at once."""
        assert not self.running
        flags = [f"--set={key}={value}" for key, value in self._settings.items()]
        command = [sys.executable, "-m", "tocsin", *flags, *self._command]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    async def listening(self) -> None:
        """Waits until it answers."""
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, verify=False, timeout=5) as client:
            await until_async(lambda: self._answers(client), f"answer of {self.name}", START_SECONDS)

    async def start(self) -> None:
        """Starts, and waits until it answers."""
        self.spawn()
        await self.listening()

    def kill(self) -> None:
        """Ends the process as a crash does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    async def terminate(self) -> int:
        """Asks it to stop, and gives its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self._process.wait, STOP_SECONDS)

    def close(self) -> None:
        """Ends whatever is left."""
        if self.running:
            self.kill()

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        if not self.running:
            raise DiedError(f"{self.name} ended before it answered; the end of {self.log}:\n{self.tail()}")
        try:
            return (await client.get("/health")).is_success
        except httpx.TransportError:
            return False

"""The real server in a process of its own, for benchmarks that go through HTTP, and the memory of its process tree."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from tocsin.client.operator import ServerCalls
from tocsin.errors import UnavailableError

_START_SECONDS = 120
_END_SECONDS = 60


class BenchServer:
    """``tocsin data --demo-token`` on a free port, ended when the block ends."""

    def __init__(self, directory: Path, settings: list[str] | None = None) -> None:
        self._directory = directory
        self._settings = [f"data.directory={directory}", "data.port=0", "log.level=warning", *(settings or [])]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.token = "demo"

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._process = start_tocsin(self._directory / "server.log", self._settings, "data", "--demo-token")
        self.url = self._address()
        self.wait_until(lambda health: bool(health["spark"]), "Spark to start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            end(self._process)

    def calls(self) -> ServerCalls:
        """Calls with the token."""
        return ServerCalls(self.url, self.token, seconds=60)

    def apply(self, text: str) -> None:
        """Carries out an application file."""
        with self.calls() as calls:
            calls.call("POST", "/apply", content=text.encode(), headers={"content-type": "application/sql"})

    def wait_until(self, condition: Any, what: str, seconds: float = _START_SECONDS) -> None:
        """Waits until the server's health satisfies a condition."""
        deadline = time.monotonic() + seconds
        with self.calls() as calls:
            while time.monotonic() < deadline:
                self._check_alive()
                # While it is starting, it says so with a status for load balancers.
                with suppress(UnavailableError):
                    if condition(calls.request("GET", "/health").json()):
                        return
                time.sleep(0.05)
        raise UnavailableError(f"waited {seconds:.0f} s for {what}; see {self._directory / 'server.log'}")

    def wait_stored(self) -> None:
        """Waits until everything accepted is in its dataset."""
        self.wait_until(lambda health: not any(f["backlog_bytes"] for f in health["feeds"]), "the feeds' backlog", 600)

    def memory(self) -> int:
        """Bytes of memory of the process and all its children (proportional share where the system tells it)."""
        assert self._process is not None
        root = psutil.Process(self._process.pid)
        total = 0
        for process in [root, *root.children(recursive=True)]:
            try:
                total += process.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
        return total

    def _address(self) -> str:
        file = self._directory / "address"
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            self._check_alive()
            if file.exists() and file.read_text().strip():
                return file.read_text().strip()
            time.sleep(0.05)
        raise UnavailableError(f"the server did not say where it listens; see {self._directory / 'server.log'}")

    def _check_alive(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise UnavailableError(
                f"the server ended with status {self._process.returncode}; see {self._directory / 'server.log'}"
            )


def start_tocsin(file: Path, settings: Sequence[str], *command: str, **environment: str) -> subprocess.Popen[bytes]:
    """A command of Tocsin in a process of its own, which writes to a file what it says."""
    overrides = [word for setting in settings for word in ("--set", setting)]
    with file.open("wb") as log:
        words = [sys.executable, "-m", "tocsin", *overrides, *command]
        return subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, **environment})


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends it in order, or at once if that takes too long."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""A real ``tocsin worker`` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.e2e.process import ROOT, STOP_SECONDS

_MARK = "E2E_NODE"


class NodeProcess:
    """A processing node of the data cluster at ``head``; started, paused, killed, started again."""

    def __init__(self, name: str, head: str, log: Path, settings: Mapping[str, object]) -> None:
        self.name, self._head, self._log, self._settings = name, head, log, dict(settings)
        self._mark = uuid.uuid4().hex
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process at hand, or the last one there was."""
        assert self._process is not None, "not started yet"
        return self._process

    @property
    def has_ended(self) -> bool:
        """Whether there is none any more."""
        return self.process.poll() is not None

    def start(self) -> None:
        """Begins to start; returns at once."""
        flags = [f"--set={key}={value}" for key, value in self._settings.items()]
        command = [sys.executable, "-m", "tocsin", *flags, "worker", "--name", self.name, "--head", self._head]
        marks = {"TOCSIN_WORKER_TOKEN": "demo", _MARK: self._mark}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **marks}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def signal(self, what: signal.Signals) -> None:
        """Sends it a signal, and nothing to what it has started."""
        self.process.send_signal(what)

    def kill(self) -> None:
        """Ends it as a crash does."""
        self.process.kill()
        self.process.wait()

    def wait(self) -> int:
        """Waits until it has ended; its exit status."""
        return self.process.wait(STOP_SECONDS)

    def close(self) -> None:
        """Ends whatever is left."""
        if self._process is not None:
            self.kill()
            for process in psutil.process_iter():
                if self._bears(process):
                    process.kill()

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def _bears(self, process: psutil.Process) -> bool:
        try:
            return bool(process.environ().get(_MARK) == self._mark)
        except psutil.Error:
            return False

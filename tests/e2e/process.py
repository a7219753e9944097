"""A real ``tocsin data`` in a process of its own: started, asked over HTTP, stopped, killed, started again.

Every process it starts bears a mark in its environment, which Spark's Java process and Python workers inherit, so that
what outlives its parent is found and ended by its own id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
import psutil

ROOT: Final = Path(__file__).parents[2]
# Generous, for the machine may be shared: reaching one means that something is wrong, not slow.
START_SECONDS: Final = 60.0
SPARK_SECONDS: Final = 180.0
WORK_SECONDS: Final = 180.0
STOP_SECONDS: Final = 90.0
_PAUSE: Final = 0.1
_MARK: Final = "E2E_PROCESS"
# Small segments, batches and tables, so that a test of a minute rolls, releases, compacts and vacuums.
SMALL: Final = {
    "spark.master": "local[2]",
    "spark.driver_memory": "1g",
    "spark.shuffle_partitions": 2,
    "feeds.segment_bytes": 8192,
    "feeds.max_batch_bytes": 65_536,
    "feeds.retry_after_seconds": 0.5,
    "channels.retry_seconds": 0.5,
    "channels.max_retry_seconds": 2,
}

T = TypeVar("T")


class DiedError(AssertionError):
    """The process ended while something was expected of it."""


class DataProcess:
    """A data cluster on ``directory``. It keeps its port through restarts, once it has one.

    Args:
        prefix: a command that runs the one it is given in a surrounding of its own; the process it starts must become
            the server.
        settings: over those in ``SMALL``.
        options: of the command.
    """

    def __init__(
        self,
        directory: Path,
        log: Path,
        settings: Mapping[str, object] | None = None,
        prefix: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        self.directory, self.log, self.settings, self._prefix = directory, log, dict(settings or {}), tuple(prefix)
        self._options = tuple(options)
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = uuid.uuid4().hex
        self.client = httpx.Client(headers={"Authorization": "Bearer demo"}, timeout=60, trust_env=False, verify=False)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process at hand, or the last one there was."""
        assert self._process is not None, "not started yet"
        return self._process

    @property
    def running(self) -> bool:
        """Whether there is one, as far as anyone was told."""
        return self._process is not None and self._process.poll() is None

    def spawn(self) -> None:
        """Begins to start; returns at once."""
        assert not self.running
        if not self._options:
            # After a kill the address is still there; whoever waits for it must not see the old one.
            self.seen(self.directory / "address").unlink(missing_ok=True)
        settings = {**SMALL, "data.directory": self.directory, "data.port": self.port, **self.settings}
        flags = [f"--set={key}={value}" for key, value in settings.items()]
        command = [*self._prefix, sys.executable, "-m", "tocsin", *flags, "data", "--demo-token", *self._options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), _MARK: self._mark}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def start(self) -> None:
        """Starts; returns when it takes publications, before Spark is there."""
        self.spawn()
        self.wait_listening()

    def wait_listening(self) -> None:
        """Waits until it answers."""
        noted = self.directory / "address"
        self.until(lambda: self.seen(noted).exists(), "an address", START_SECONDS)
        url = self.seen(noted).read_text(encoding="utf-8").strip()
        self.port = httpx.URL(url).port or 0
        self.client.base_url = httpx.URL(url)
        self.until(lambda: self.client.get("/health").status_code, "an answer", START_SECONDS)

    def wait_ready(self) -> None:
        """Waits until Spark is there and channels run."""
        self.until(lambda: self.health()["spark"], "Spark", SPARK_SECONDS)

    def kill(self) -> None:
        """Ends the process as a crash does, and nothing but that process."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> int:
        """Asks it to stop, and gives its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def relatives(self) -> list[psutil.Process]:
        """The processes that came of this one or of its predecessors, such as Spark's, apart from itself."""
        return [
            process for process in psutil.process_iter() if process.pid != self.process.pid and self._bears(process)
        ]

    def wait_alone(self) -> None:
        """Waits, once it has ended, until nothing that came of it is left."""
        deadline = time.monotonic() + STOP_SECONDS
        while left := self.relatives():
            assert time.monotonic() < deadline, f"still there: {left}"
            psutil.wait_procs(left, timeout=_PAUSE)

    def close(self) -> None:
        """Ends whatever is left."""
        if self.running:
            self.kill()
        for process in self.relatives() if self._process is not None else []:
            # It may end by itself meanwhile.
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.client.close()

    def until(self, condition: Callable[[], T], what: str, seconds: float = WORK_SECONDS) -> T:
        """Waits for the condition to give something true, and gives that."""
        deadline = time.monotonic() + seconds
        while not (met := self._tried(condition)):
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} within {seconds:.0f} s; the end of the log:\n{self.tail()}")
            self._pause(what)
        return met

    def apply(self, text: str) -> list[dict[str, Any]]:
        """Carries out statements, which must be welcome."""
        answer = self.client.post("/apply", content=text, timeout=SPARK_SECONDS)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["outcomes"])

    def publish(self, feed: str, lines: bytes) -> httpx.Response:
        """Sends records, one per line."""
        return self.client.post(f"/feeds/{feed}", content=lines, headers={"Content-Type": "application/x-ndjson"})

    def subscribe(self, channel: str, parameters: list[dict[str, object]]) -> list[int]:
        """Attaches the broker ``tester``."""
        self.client.post("/brokers", json={"name": "tester", "url": "http://127.0.0.1:1"}).raise_for_status()
        answer = self.client.post(
            "/subscriptions", json={"broker": "tester", "channel": channel, "parameters": parameters}
        )
        assert answer.status_code == 200, answer.text
        return list(answer.json()["ids"])

    def results(self, channel: str, first: int = 1, last: int = 1_000_000) -> list[dict[str, Any]]:
        """What executions found."""
        found: list[dict[str, Any]] = []
        while first <= last:
            answer = self.client.post("/results", json={"channel": channel, "first": first, "last": last})
            assert answer.status_code == 200, answer.text
            found += answer.json()["results"]
            first = answer.json()["upto"] + 1
        return found

    def health(self) -> dict[str, Any]:
        """All that it says of itself."""
        return dict(self.client.get("/health").json())

    def channels(self) -> dict[str, dict[str, Any]]:
        """The channels as they are listed, by name."""
        return {item["name"]: item for item in self.client.get("/channels").json()["items"]}

    def listed(self, things: str, key: str) -> dict[str, Any]:
        """What the list of datasets, feeds or channels says of each under ``key``."""
        return {item["name"]: item[key] for item in self.client.get(f"/{things}").json()["items"]}

    def drained(self) -> bool:
        """Whether everything that was accepted is in its dataset."""
        return not any(feed["backlog_bytes"] for feed in self.health()["feeds"])

    def wait_drained(self) -> None:
        """Waits until everything that was accepted is in its dataset."""
        self.until(self.drained, "empty backlog")

    def seen(self, path: Path) -> Path:
        """A path as this test sees it, though the process may have file systems mounted that only it sees."""
        if not self._prefix or not self.running:
            return path
        return Path(f"/proc/{self.process.pid}/root{path}")

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _tried(self, condition: Callable[[], T]) -> T | None:
        try:
            return condition()
        except httpx.TransportError:
            return None

    def _pause(self, what: str) -> None:
        try:
            status = self.process.wait(_PAUSE)
        except subprocess.TimeoutExpired:
            return
        raise DiedError(f"waiting for {what}, but it ended with status {status}; the end of the log:\n{self.tail()}")

    def _bears(self, process: psutil.Process) -> bool:
        try:
            marked = process.environ().get(_MARK) == self._mark
            return bool(marked and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False

"""An S3 server of the tests' own, on a free port of this machine: versitygw, which a script has built."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.ports import free_port
from tocsin.data.lake.bucket import Bucket, BucketAddress
from tocsin.data.lake.s3 import S3Folder
from tocsin.local.s3 import BUCKET, client_variables, has_s3, make_directories, s3_command, s3_jars, s3_keys

connector_jars = s3_jars

_START_SECONDS: Final = 120.0
KEY, SECRET = "tests", "not-a-secret-of-anybody"


class S3Server:
    """Starts and stops as a test wants; what it keeps stays. Made by :func:`s3_server`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        # What whoever uses it has in its environment.
        self.variables = client_variables(self.endpoint, KEY, SECRET)
        make_directories(directory)

    def start(self) -> None:
        """Starts, and waits until it answers."""
        assert has_s3(), "the S3 server is not there; scripts/ensure-s3 builds it"
        keys, command = s3_keys(KEY, SECRET), s3_command(f"127.0.0.1:{self.port}", self._directory)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **keys}
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, self._log.read_text(encoding="utf-8")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it, in order or at once."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_SECONDS)
            self._process = None

    def pause(self) -> None:
        """Lets it take connections, but answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def has_request(self) -> bool:
        """Whether a request has reached this machine's side of a connection, and has not been read."""
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        queues = [line.split()[4] for line in lines if line.split()[1].endswith(f":{self.port:04X}")]
        return any(int(queue.partition(":")[2], 16) for queue in queues)

    def folder(self, prefix: str = "") -> S3Folder:
        """A folder that nobody has used yet."""
        return S3Folder(Bucket(BucketAddress(BUCKET, self.endpoint, "us-east-1", KEY, SECRET)), prefix or uuid4().hex)

    @property
    def _log(self) -> Path:
        return self._directory / "log"

    def _answers(self) -> bool:
        with socket.socket() as trying:
            trying.settimeout(1)
            return trying.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A running server, which is gone in the end with all it kept."""
    if not has_s3():
        pytest.skip("there is no S3 server: scripts/ensure-s3 builds it, with a Go that is newer than Debian's")
    with tempfile.TemporaryDirectory(prefix="tocsin-s3-") as place:
        made = S3Server(Path(place))
        made.start()
        try:
            yield made
        finally:
            made.stop(signal.SIGKILL)

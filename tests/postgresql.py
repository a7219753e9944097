"""A PostgreSQL server of the tests' own, on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psutil
import psycopg

from tests.ports import free_port
from tests.waiting import until

START_SECONDS: Final = 60.0
# PostgreSQL refuses to run as root; Debian's package makes this user.
USER: Final = "postgres"


class PostgresqlServer:
    """Starts and stops as a test wants; what it keeps stays. Made by :func:`postgresql_server`."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self._programs, self._directory = programs, directory
        self._process: subprocess.Popen[bytes] | None = None
        self._port = free_port()

    def create(self) -> None:
        """Makes its files."""
        command = [str(self._programs / "initdb"), "-D", str(self._directory / "data"), "-U", USER, "-A", "trust"]
        subprocess.run([*command, "-E", "UTF8", "--no-sync"], check=True, stdout=subprocess.DEVNULL, **_as_user())

    def start(self) -> None:
        """Starts, and waits until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self._port,
            "unix_socket_directories": self._directory,
            # No test pulls the plug.
            "fsync": "off",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self._directory / "data"), *flags]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **_as_user())
        self._wait_ready()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends it, with all connections to it."""
        if self._process is not None:
            helpers = psutil.Process(self._process.pid).children(recursive=True)
            self._process.send_signal(how)
            self._process.wait(START_SECONDS)
            self._process = None
            # When it is killed, they notice by themselves; it does not start again before they have.
            until(lambda: not any(map(_is_alive, helpers)))

    def database(self) -> str:
        """The URL of a new and empty database."""
        name = f"test_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def execute(self, statement: str) -> None:
        """Carries out a statement as an administrator."""
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _url(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self._port}/{database}"

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError:
                assert self._process is not None
                assert self._process.poll() is None, (self._directory / "log").read_text(encoding="utf-8")
                assert time.monotonic() < deadline, (self._directory / "log").read_text(encoding="utf-8")
                time.sleep(0.05)
            else:
                return


@contextmanager
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A running server, which is gone in the end with all it kept."""
    # Not below pytest's own directory: as root that is closed to the user the server runs as.
    with tempfile.TemporaryDirectory(prefix="tocsin-postgresql-") as place:
        if os.getuid() == 0:
            shutil.chown(place, USER, USER)
        made = PostgresqlServer(_programs(), Path(place))
        made.create()
        made.start()
        try:
            yield made
        finally:
            made.stop()


def _programs() -> Path:
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin")), Path(shutil.which("postgres") or "").parent]
    found = [place for place in places if (place / "postgres").exists() and (place / "initdb").exists()]
    assert found, "PostgreSQL is not installed; scripts/ensure-postgresql installs it"
    return found[0]


def _as_user() -> dict[str, Any]:
    return {"user": USER, "group": USER, "extra_groups": [], "cwd": "/"} if os.getuid() == 0 else {}


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

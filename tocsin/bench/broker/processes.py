"""Servers in processes of their own, each on the cores it is given; the measuring process keeps to its own."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from tocsin.errors import InvalidError, UnavailableError

_SBIN: Final = "/usr/sbin:/usr/local/sbin"  # where Debian puts servers, and not everybody's PATH leads
_SPARE_FILES: Final = 100
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 20.0


@contextmanager
def apart() -> Iterator[tuple[set[int], set[int]]]:
    """Keeps this process off one core; gives that core, for what is measured, and the others."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) == 1:
        raise InvalidError("this needs two cores, one for the server and one for its clients, and there is one")
    server = {max(allowed)}
    with kept_to(allowed - server):
        yield server, allowed - server


@contextmanager
def kept_to(cores: set[int]) -> Iterator[None]:
    """Keeps this process to some cores; what it starts meanwhile stays there."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def running(command: Sequence[str], log: Path, cores: set[int]) -> Iterator[psutil.Process]:
    """A program, ended when the block ends."""
    with log.open("ab") as output, kept_to(cores):
        process = subprocess.Popen([find_program(command[0]), *command[1:]], stdout=output, stderr=output)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def find_program(program: str) -> str:
    """Where a program is; one that is not there is an InvalidError."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_SBIN}")
    if path is None:
        raise InvalidError(f"{program} is not installed; scripts/ensure-peers does it, or use --no-peers")
    return path


def check_files(connections: int) -> None:
    """Raises InvalidError where a process may not have so many connections, and some files."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < connections + _SPARE_FILES:
        raise InvalidError(
            f"{connections} connections need {connections + _SPARE_FILES} open files, and {most} are allowed: "
            "raise the limit ('ulimit -Hn', or LimitNOFILE of systemd), or measure fewer with --sizes"
        )


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def wait_until(condition: Callable[[], bool], process: psutil.Process, log: Path, what: str) -> None:
    """Waits for something about a process that is starting."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            raise UnavailableError(f"{what} ended: {_last(log)}")
        if condition():
            return
        time.sleep(0.05)
    raise UnavailableError(f"{what} did not start within {_START_SECONDS:.0f} seconds: {_last(log)}")


def listens(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def _last(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"

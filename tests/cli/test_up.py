"""``tocsin up`` as a newcomer runs it. What it is made of has tests of its own in ``tests/local``."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import IO, Self

import httpx
import psutil
import pytest

from tests.cli.program import Program
from tests.pages import README, ROOT, blocks, commands

APPLICATION = """
CREATE DATASET Reports (id STRING, etype STRING, message STRING) PRIMARY KEY id;
CREATE FEED reports INTO Reports SLICED BY id;
CREATE CONTINUOUS CHANNEL OfType(event STRING) AS
SELECT r.id, r.message FROM Reports r WHERE r.etype = event AND is_new(r);
"""
ANYWHERE = ("--set=data.port=0", "--set=coordinator.port=0", "--set=broker.port=0")


def test_a_port_that_is_taken_is_one_sentence(tocsin: Program) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = tocsin("--set=data.port=0", "--set=coordinator.port=0", f"--set=broker.port={port}", "up")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith(f"error: broker-1: cannot listen on 127.0.0.1, port {port}: Address already in use")


def test_an_application_that_cannot_be_read_is_refused_before_anything_starts(tocsin: Program) -> None:
    Path("app.sql").write_text("CREATE CHANEL x;", encoding="utf-8")
    refused = tocsin("up", "--app", "app.sql")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("error: app.sql: line 1, column 8: expected DATASET")
    assert tocsin("up", "--app", "none.sql").err.startswith("error: none.sql cannot be read: No such file")
    assert not Path("tocsin-up").exists()


def test_a_directory_that_cannot_be_made_is_refused(tocsin: Program) -> None:
    Path("file").write_text("", encoding="utf-8")
    refused = tocsin(*ANYWHERE, "up", "--directory", "file/up")
    assert refused.err == "error: file/up cannot be used: Not a directory; choose another with --directory\n"


def test_an_address_for_others_is_refused(tocsin: Program) -> None:
    assert "0.0.0.0 can be reached from other machines" in tocsin("--set=broker.host=0.0.0.0", "up").err


@pytest.mark.process
def test_the_example_of_the_readme_and_a_broker_that_is_killed_comes_back(tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text(blocks(README, "sql")[0], encoding="utf-8")
    [told] = [block for block in blocks(README, "text") if block.startswith("NearMe #1")]
    with _up(tmp_path, "--brokers", "2", "--app", "app.sql") as (running, lines):
        addresses = _addresses(lines)
        with _Person(tmp_path, addresses, _typed("tocsin subscribe ")) as ada:
            _publish(_typed('echo \'{"userId"'), tmp_path, addresses)
            _wait_until_stored(addresses["data cluster"])
            _publish(_typed('echo \'{"id": "r1"'), tmp_path, addresses)
            assert [ada.line(), ada.line()] == told.splitlines()
        _kill_broker(running)
        assert next(line for line in lines if "SIGKILL" in line).startswith("broker-1 was ended by SIGKILL; starting")
        assert next(line for line in lines if "is back" in line) == "broker-1 is back.\n"


@pytest.mark.process
def test_what_it_says_to_try_works(tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text(APPLICATION, encoding="utf-8")
    with _up(tmp_path, "--brokers", "1", "--app", "app.sql") as (_, lines):
        addresses = _addresses(lines)
        [subscribe, publish, top] = _commands(lines)
        with _Person(tmp_path, addresses, subscribe) as me:
            _publish(publish, tmp_path, addresses)
            assert me.line().startswith("OfType #")
        assert "broker-1" in _shell(top, tmp_path, addresses)


@pytest.mark.process
def test_a_second_run_goes_on_where_the_first_was_although_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text(APPLICATION, encoding="utf-8")
    with _up(tmp_path, "--brokers", "1", "--app", "app.sql") as (running, lines):
        _commands(lines)
        children = psutil.Process(running.pid).children(recursive=True)
        running.kill()
        _, left = psutil.wait_procs(children, timeout=60)
        assert not left
    with _up(tmp_path, "--brokers", "1") as (running, lines):
        assert "OfType --param event=text" in _commands(lines)[0]


@contextmanager
def _up(directory: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    """``tocsin up`` on free ports, and its lines; in the end it is told to stop, and must leave nobody behind."""
    command = ["tocsin", *ANYWHERE, "--set=spark.driver_memory=1g", "up", *options]
    running = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True, env=_environment(directory))
    assert running.stdout
    try:
        with running.stdout as lines:
            yield running, lines
            if running.poll() is None:
                _stop(running, lines)
    finally:
        running.kill()
        running.wait()


def _stop(running: subprocess.Popen[str], lines: IO[str]) -> None:
    children = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGTERM)
    assert "Stopping the brokers" in lines.read()
    assert running.wait(180) == 0
    _, left = psutil.wait_procs(children, timeout=60)
    assert not left


class _Person:
    """A person at a terminal with a command that goes on; what it prints is read line by line."""

    def __init__(self, directory: Path, addresses: dict[str, str], command: str) -> None:
        self._running = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=directory,
            env=_environment(directory, addresses),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._running.stderr
        next(line for line in self._running.stderr if line.startswith("subscribed to"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.send_signal(signal.SIGINT)
        self._running.communicate(timeout=60)

    def line(self) -> str:
        """The next line."""
        assert self._running.stdout
        return next(self._running.stdout).rstrip("\n")


def _environment(directory: Path, addresses: dict[str, str] | None = None) -> dict[str, str]:
    """As after ``export PATH=… TOCSIN_TOKEN=demo``: there is a program ``tocsin``."""
    program = directory / "bin" / "tocsin"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tocsin "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    if addresses:
        environment |= {"TOCSIN_SERVER": addresses["data cluster"], "TOCSIN_COORDINATOR": addresses["coordinator"]}
    return {**os.environ, **environment, "TOCSIN_TOKEN": "demo"}


def _typed(start: str) -> str:
    """The command of the README that begins so."""
    [command] = [command for command in commands(README) if command.startswith(start)]
    return command


def _addresses(lines: Iterator[str]) -> dict[str, str]:
    """Where each part is, as it is said."""
    next(line for line in lines if line.startswith("Tocsin is up"))
    said = takewhile(str.strip, lines)
    return {name: url for name, url, *_ in (re.split(r"  +", line.strip()) for line in said)}


def _commands(lines: Iterator[str]) -> list[str]:
    """The three commands to try."""
    next(line for line in lines if line.startswith("Try in other terminals"))
    return [next(lines).strip() for _ in range(3)]


def _publish(command: str, directory: Path, addresses: dict[str, str]) -> None:
    assert "1 accepted, 0 refused" in _shell(command, directory, addresses)


def _shell(command: str, directory: Path, addresses: dict[str, str]) -> str:
    environment = _environment(directory, addresses)
    done = subprocess.run(
        ["bash", "-c", command], cwd=directory, env=environment, capture_output=True, text=True, timeout=120
    )
    return done.stdout + done.stderr


def _wait_until_stored(url: str) -> None:
    headers = {"Authorization": "Bearer demo"}
    while any(feed["backlog_bytes"] for feed in httpx.get(f"{url}/health", headers=headers).json()["feeds"]):
        continue


def _kill_broker(running: subprocess.Popen[str]) -> None:
    for child in psutil.Process(running.pid).children():
        if "--set=broker.name=broker-1" in child.cmdline():
            child.kill()

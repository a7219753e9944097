"""``tocsin`` as a person runs it, but in the test's own process."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from tocsin.cli.main import app, main


class Run(NamedTuple):
    """What one run of ``tocsin`` did."""

    status: int | str | None
    out: str
    err: str


class Program:
    """Runs ``tocsin`` with arguments, and gives it standard input when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Run:
        self._monkeypatch.setattr("tocsin.cli.main.app", command_line())
        self._monkeypatch.setattr(sys, "argv", ["tocsin", *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        with logging_as_it_was(), pytest.raises(SystemExit) as exit:
            main()
        captured = self._capsys.readouterr()
        return Run(exit.value.code, captured.out, captured.err)


@cache
def command_line() -> Any:
    """All commands. Reading their options takes longer than most of them run, so that all tests share it."""
    return get_command(app)


@contextmanager
def logging_as_it_was() -> Iterator[None]:
    """A server logs to what is standard error at the time, which here is gone when the test ends."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # pytest's own handlers are kept away: a server closes those it replaces.
    root.handlers[:] = [logging.NullHandler()]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)

"""``tocsin`` as a person runs it, but in the test's own process."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple

import pytest

from tocsin.cli.main import main


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
        self._monkeypatch.setattr(sys, "argv", ["tocsin", *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        with pytest.raises(SystemExit) as exit:
            main()
        captured = self._capsys.readouterr()
        return Run(exit.value.code, captured.out, captured.err)

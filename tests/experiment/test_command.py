"""``tocsin experiment`` as a newcomer runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import Program


def test_without_matplotlib_it_says_how_to_get_it(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused = tocsin("experiment", "scale", "--quick")
    assert refused.status == 1
    assert (
        refused.err == "error: matplotlib is not installed, and experiments draw; pip install 'tocsin[experiments]'\n"
    )
    assert not Path("results").exists()


@pytest.mark.slow
def test_without_a_place_it_goes_into_results(tocsin: Program) -> None:
    assert tocsin("experiment", "scale", "--quick").status == 0
    (made,) = Path("results").iterdir()
    assert made.name.startswith("scale-20")
    assert (made / "report.html").exists()


def test_a_policy_that_does_not_exist_is_refused_before_anything_is_made(tocsin: Program) -> None:
    refused = tocsin("experiment", "scale", "--quick", "--policy", "best")
    assert refused.status == 1
    assert refused.err.startswith("error: there is no planner 'best'; there are ldm, sdm")
    assert not Path("results").exists()


def test_ctrl_c_in_compiled_code_is_one_too(tocsin: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        unpickling = SystemError("a function returned a result with an exception set")
        unpickling.__cause__ = KeyboardInterrupt()
        raise SystemError("the compiled one that called it did, too") from unpickling

    monkeypatch.setattr("tocsin.experiment.conduct.conduct", interrupt)
    stopped = tocsin("experiment", "scale", "--quick", "--out", "run")
    assert stopped.status == 130
    assert stopped.err == "Stopped. What is done is in run; the same command with --out run goes on.\n"


@pytest.mark.process
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tocsin", "experiment", "scale", "--out", "run"]
    process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ}, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline() == "50 brokers and 10000 subscribers done, 1 of 10\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "Stopped. What is done is in run; the same command with --out run goes on."
    assert "cells are done" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")

"""``tocsin demo`` as a newcomer runs it. The demo's parts have tests of their own in ``tests/demo``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import Program


def test_a_directory_that_cannot_be_made_is_refused_with_the_reason(tocsin: Program) -> None:
    Path("file").write_text("", encoding="utf-8")
    refused = tocsin("demo", "--keep", "file/data")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err == "error: file/data cannot be made: Not a directory; give --keep another directory\n"


def test_a_duration_of_nothing_is_a_usage_error(tocsin: Program) -> None:
    assert tocsin("demo", "--seconds", "0").status == 2


@pytest.mark.e2e
def test_without_java_it_ends_with_one_sentence(tmp_path: Path) -> None:
    without = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    ended = subprocess.run(_command("--seconds", "5"), env=without, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    log, error = ended.stderr.splitlines()
    assert error.startswith("error: Spark did not start")
    assert "java -version" in error
    Path(log.removeprefix("The log is in ")).unlink()


@pytest.mark.e2e
def test_it_shows_what_subscriptions_find_and_ends_by_itself() -> None:
    ended = subprocess.run(_command("--seconds", "15"), capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"^\d\d:\d\d:\d\d  Aino and Bilal +\d+ new  EmergenciesOfType\(", ended.stdout, re.MULTILINE)
    assert re.search(r"^In 15 s: \d+ reports and 6,000 locations published; all", ended.stdout, re.MULTILINE)


@pytest.mark.e2e
def test_ctrl_c_ends_it_with_the_summary_and_keeps_what_was_asked_for(tmp_path: Path) -> None:
    running = subprocess.Popen(
        _command("--keep", str(tmp_path / "kept")), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stdout is not None
    with running, running.stdout as lines:
        next(line for line in lines if line.startswith("Publishing until you press Ctrl-C"))
        # As a terminal does: to all processes, Spark's among them.
        os.killpg(running.pid, signal.SIGINT)
        rest = lines.read()
        assert running.wait(120) == 0
    assert "reports and" in rest
    assert (tmp_path / "kept" / "demo.log").exists()


def _command(*options: str) -> list[str]:
    return [sys.executable, "-m", "tocsin", "demo", *options]

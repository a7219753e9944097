"""``tocsin overlay demo`` as a newcomer runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.interrupting import interrupt
from tests.cli.program import Program


def _command(*options: str) -> list[str]:
    return [sys.executable, "-m", "tocsin", "overlay", "demo", *options]


def test_a_directory_with_something_in_it_is_refused(tocsin: Program) -> None:
    Path("kept").mkdir()
    Path("kept/file").write_text("", encoding="utf-8")
    refused = tocsin("overlay", "demo", "--keep", "kept")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("error: kept is not empty")


@pytest.mark.process
def test_nothing_is_lost_and_it_ends_by_itself() -> None:
    command = _command("--seconds", "6", "--people", "30", "--edges", "2", "--heads", "2", "--rate", "20")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"^30 people have an alert each, of which \d+ differ", ended.stdout, re.MULTILINE)
    assert re.search(r"^\d\d:\d\d:\d\d  p\d+ +", ended.stdout, re.MULTILINE)
    assert re.search(r"^In 6 s: \d+ quotes published, [1-9]\d* alerts delivered", ended.stdout, re.MULTILINE)
    assert ": 0 lost, 0 delivered twice, 0 out of order, 0 not asked for; " in ended.stdout


@pytest.mark.process
def test_ctrl_c_ends_it_with_the_verdict_and_leaves_nobody_behind(tmp_path: Path) -> None:
    rest = interrupt(_command("--keep", str(tmp_path / "kept"), "--people", "10", "--edges", "2"), begun="── 5 s: ")
    assert " 0 lost, 0 delivered twice, 0 out of order" in rest
    assert (tmp_path / "kept" / "log" / "edge-1.log").exists()

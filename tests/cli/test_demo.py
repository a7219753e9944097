"""``tocsin demo`` as a newcomer runs it. The demo's parts have tests of their own in ``tests/demo``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.interrupting import interrupt
from tests.cli.program import Program


def test_a_directory_that_cannot_be_made_is_refused_with_the_reason(tocsin: Program) -> None:
    Path("file").write_text("", encoding="utf-8")
    refused = tocsin("demo", "--keep", "file/data")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err == "error: file/data cannot be used: Not a directory; choose another with --keep\n"


def test_a_duration_of_nothing_is_a_usage_error(tocsin: Program) -> None:
    assert tocsin("demo", "--seconds", "0").status == 2


def test_a_trace_that_is_not_there_is_refused_before_anything_is_made(tocsin: Program) -> None:
    for kept in (["--keep", "kept"], []):
        refused = tocsin("demo", "--trace", "none.parquet", *kept)
        assert (refused.status, refused.out) == (1, "")
        assert "none.parquet: cannot be read as traces in Parquet" in refused.err
    assert not Path("kept").exists()


def test_who_may_not_make_hosts_is_told_so_before_anything_starts(
    tocsin: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = tocsin("demo", "--hosts", "--keep", "kept")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("error: hosts are network namespaces, made with ip: install it")
    assert not Path("kept/log").exists()


def test_on_hosts_a_directory_with_the_data_of_another_demo_is_refused(tocsin: Program) -> None:
    Path("kept/data").mkdir(parents=True)
    refused = tocsin("demo", "--hosts", "--keep", "kept")
    assert (refused.status, refused.out) == (1, "")
    assert "kept has the data of another demo, without its database: choose an empty one" in refused.err


@pytest.mark.process
def test_without_java_it_ends_with_a_reason_and_keeps_the_logs(tmp_path: Path) -> None:
    without = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    command = _command("--seconds", "5", "--keep", str(tmp_path / "kept"))
    ended = subprocess.run(command, env=without, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: Spark did not start")
    assert "java -version" in ended.stderr
    assert (tmp_path / "kept" / "log" / "data.log").exists()


@pytest.mark.process
def test_it_balances_the_brokers_loses_nothing_and_ends_by_itself() -> None:
    command = _command("--seconds", "75", "--people", "60", "--brokers", "3")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"^60 people hold \d+ subscriptions, of which \d+ differ", ended.stdout, re.MULTILINE)
    assert re.search(r"^\d\d:\d\d:\d\d  [pc]\d+ +\d+ new  Emergencies\w+\(", ended.stdout, re.MULTILINE)
    assert re.search(r"^── \d+ (person|people) moved without a gap: ", ended.stdout, re.MULTILINE)
    assert re.search(r": 0 lost, 0 delivered twice, 0 out of order; [1-9]\d* moves", ended.stdout)


@pytest.mark.process
def test_ctrl_c_ends_it_with_the_summary_and_leaves_nobody_behind(tmp_path: Path) -> None:
    rest = interrupt(_command("--keep", str(tmp_path / "kept"), "--people", "20", "--brokers", "2"), begun="── 5 s: ")
    assert "cov of the brokers' loads" in rest
    assert " 0 lost, 0 delivered twice, 0 out of order" in rest
    assert (tmp_path / "kept" / "log" / "people-1.log").exists()


def _command(*options: str) -> list[str]:
    return [sys.executable, "-m", "tocsin", "demo", *options]

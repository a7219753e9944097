"""Where everything is installed, a test that is skipped is not taken for one that has passed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import ALLOWED

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.fixture
def server():
    pytest.skip("there is no such server")

def test_with_a_server(server): ...

@pytest.mark.skipif(True, reason="one core")
def test_that_may_be_skipped(): ...

@pytest.mark.xfail(reason="not yet", strict=True)
def test_of_what_is_not_there_yet():
    raise AssertionError

def test_that_passes(): ...
"""


def run(folder: Path, tests: str, **variables: str) -> tuple[int, str]:
    """The status and the output of a run of some tests."""
    (folder / "test_some.py").write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "-p", "tests.skips", "test_some.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "UNEXPECTED_SKIPS": "", "PYTEST_ADDOPTS": ""} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def test_a_skip_is_one_where_something_may_be_missing(tmp_path: Path) -> None:
    status, said = run(tmp_path, TESTS)
    assert status == 0
    assert "1 passed, 2 skipped, 1 xfailed" in said


def test_a_skip_is_a_failure_where_nothing_may_be_missing(tmp_path: Path) -> None:
    status, said = run(tmp_path, TESTS, UNEXPECTED_SKIPS="fail")
    assert status == 1
    assert "1 passed, 1 skipped, 1 xfailed, 1 error" in said
    assert "skipped, where nothing is to be: there is no such server" in said


def test_so_is_that_of_a_whole_file(tmp_path: Path) -> None:
    tests = "import pytest\npytest.importorskip('no_such_library')\ndef test_it(): ...\n"
    assert run(tmp_path, tests)[0] == 5, "no tests"
    status, said = run(tmp_path, tests, UNEXPECTED_SKIPS="fail")
    assert status not in (0, 5)
    assert "could not import 'no_such_library'" in said


@pytest.mark.parametrize("reason", ALLOWED)
def test_every_reason_that_is_allowed_is_given_somewhere(reason: str) -> None:
    if reason.startswith("could not import"):
        reason = f'importorskip("{reason.split(chr(39))[1]}")'
    files = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("tocsin/local/*.py")]
    own = {Path(__file__), ROOT / "tests/skips.py"}
    assert any(reason in path.read_text(encoding="utf-8") for path in files if path not in own)

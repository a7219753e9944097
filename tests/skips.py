"""A test that is skipped looks like one that has passed. Where everything is to be installed, as in CI, a skip fails.

With ``UNEXPECTED_SKIPS=fail`` in the environment a skip is a failure, unless its reason begins as one of those below.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Final, TypeVar

import pytest

ALLOWED: Final = {
    "systemd is not installed": "a system with another init may not let it be installed",
    "hosts are network namespaces, which this user may not make": "not everybody is root, nor may root in a container",
    "this system does not let us mount a file system": "nor may everybody mount in a container",
    "could not import 'mtkahypar'": "there are wheels of it for some machines and some versions of Python",
    "one core": "what is measured has no core of its own there",
}
"""How the reasons begin that are no defect, and why they are none."""

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What has come of a test."""
    return _judge((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """What has come of looking for the tests of a file, which may be skipped as a whole."""
    return _judge((yield))


def _judge(report: Report) -> Report:
    if os.environ.get("UNEXPECTED_SKIPS") != "fail" or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = _reason(report)
    if not reason.startswith(tuple(ALLOWED)):
        report.outcome = "failed"
        report.longrepr = (
            f"skipped, where nothing is to be: {reason}\n"
            "Install what is missing, or add the reason to ALLOWED in tests/skips.py and say why it is no defect."
        )
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.removeprefix("Skipped: ")

"""Says why a test failed as soon as it does: a run of half an hour that is cut off has then said what it found."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import pytest
from _pytest._code.code import ExceptionChainRepr

LINES: Final = 30
"""How many lines are shown at once, the last ones; the summary at the end has all."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Only the process that talks to the terminal says anything, not those that it has run tests."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_AtOnce(terminal))


def without_group(nodeid: str) -> str:
    """A test by the name by which it can be run again: without the group that pytest-xdist has put behind it."""
    name, _, group = nodeid.rpartition("@")
    return name if name and (group == "spark" or group.startswith("tests/")) else nodeid


def way(report: pytest.TestReport) -> str:
    """The places in our own code through which a failure came, of which the last lines of a library's say nothing."""
    if not isinstance(report.longrepr, ExceptionChainRepr):
        return ""
    entries = [entry for traceback, *_ in report.longrepr.chain for entry in traceback.reprentries]
    places = [place for entry in entries if (place := getattr(entry, "reprfileloc", None)) is not None]
    ours = [f"{place.path}:{place.lineno}" for place in places if place.path.startswith(("tests/", "tocsin/"))]
    return " > ".join(dict.fromkeys(ours))


class _AtOnce:
    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        report.nodeid = without_group(report.nodeid)
        yield
        if report.failed:
            last = report.longreprtext.splitlines()[-LINES:]
            self._terminal.write_line("")
            self._terminal.write_line(
                f"FAILED {report.nodeid} ({report.when}, after {report.duration:.0f} s)", red=True
            )
            self._terminal.write_line(way(report))
            self._terminal.write_line("\n".join(last))

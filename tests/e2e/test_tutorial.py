"""The tutorial, followed to the letter: what it tells a reader to do gives what it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Cluster
from tests.e2e.process import DataProcess
from tests.pages import ROOT, TUTORIAL, blocks, commands, sessions

pytestmark = pytest.mark.e2e


class Reader:
    """Someone who types what a page says, in a directory of their own."""

    def __init__(self, page: Path, data: DataProcess, directory: Path) -> None:
        self._page, self._data, self._directory = page, data, directory

    def save(self, name: str, text: str) -> None:
        """Makes a file."""
        (self._directory / name).write_text(text, encoding="utf-8")

    def tocsin(self, *arguments: str, stdin: str = "") -> str:
        """What ``tocsin`` prints, on both of its outputs, but for what it says while somebody waits."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TOCSIN_SERVER": str(self._data.client.base_url),
            "TOCSIN_TOKEN": "demo",
        }
        done = subprocess.run(
            [sys.executable, "-m", "tocsin", *arguments],
            cwd=self._directory,
            env=environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
        )
        lines = [line.rstrip() for line in done.stdout.splitlines() if "; it is waited for up to" not in line]
        return "\n".join(lines)

    def echo(self) -> None:
        """Types every ``echo … | tocsin publish …`` of the page, slowly enough for each record to be stored."""
        for command in commands(self._page):
            if match := re.fullmatch(r"echo '(.*)' \| tocsin publish (\w+) -", command):
                assert self.tocsin("publish", match[2], "-", stdin=match[1]) == "1 accepted, 0 refused"
                self._data.wait_drained()

    def curl(self, path: str) -> Any:
        """The answer to the page's call of a path."""
        return self._data.client.post(path, content=self._call(path)[0]).json()

    def curled(self, path: str) -> Any:
        """What the page shows in answer to it."""
        return json.loads("".join(self._call(path)[1].splitlines()))

    def shown(self, command: str) -> list[str]:
        """What the page shows in answer to a command, each time it is typed."""
        return [answer.rstrip() for typed, answer in sessions(self._page) if typed.partition("  #")[0] == command]

    def _call(self, path: str) -> tuple[str, str]:
        """The body and the answer that is shown."""
        calls = ((re.search(rf"8800{path} --json '(.*)'$", typed), answer) for typed, answer in sessions(self._page))
        return next((call[1], answer) for call, answer in calls if call)


@pytest.fixture
def data(cluster: Cluster) -> DataProcess:
    process = cluster()
    process.start()
    return process


def test_the_tutorial(data: DataProcess, tmp_path: Path) -> None:
    reader = Reader(TUTORIAL, data, tmp_path)
    application, replacement = blocks(TUTORIAL, "sql")
    reader.save("air.sql", application)
    reader.save("stations.csv", blocks(TUTORIAL, "csv")[0])
    reader.save("readings.ndjson", blocks(TUTORIAL, "json")[0])
    applied, refused = reader.shown("tocsin apply air.sql")
    assert reader.tocsin("apply", "air.sql") == applied
    assert reader.curl("/brokers") == reader.curled("/brokers")
    assert reader.curl("/subscriptions") == reader.curled("/subscriptions")
    assert [reader.tocsin("publish", "readings", "readings.ndjson")] == reader.shown(
        "tocsin publish readings readings.ndjson"
    )
    data.until(lambda: len(data.results("BadAir")) == 2, "results")
    assert reader.curl("/results") == reader.curled("/results")

    reader.echo()
    data.until(lambda: len(data.results("BadAir")) == 3, "a further result")
    kept = application[: application.index("CREATE CONTINUOUS CHANNEL")]
    reader.save("air.sql", kept + replacement)
    assert "channel BadAir    replaced" in reader.tocsin("apply", "air.sql")
    reader.save("air.sql", kept + replacement.replace("s.city", "s.town"))
    assert reader.tocsin("apply", "air.sql") == refused

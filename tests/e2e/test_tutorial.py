"""The README and the tutorial, followed to the letter: what they tell a reader to do gives what they show."""

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
from tests.pages import README, ROOT, TUTORIAL, blocks, commands

pytestmark = pytest.mark.e2e


class Reader:
    """Someone who types what a page says, in a directory of their own."""

    def __init__(self, page: Path, data: DataProcess, directory: Path) -> None:
        self._page, self._data, self._directory = page, data, directory

    def save(self, name: str, text: str) -> None:
        """Makes a file."""
        (self._directory / name).write_text(text, encoding="utf-8")

    def tocsin(self, *arguments: str, stdin: str = "") -> str:
        """What ``tocsin`` prints, on both of its outputs."""
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
        return "\n".join(line.rstrip() for line in done.stdout.splitlines())

    def echo(self) -> None:
        """Types every ``echo … | tocsin publish …`` of the page."""
        for command in commands(self._page):
            if match := re.fullmatch(r"echo '(.*)' \| tocsin publish (\w+) -", command):
                assert self.tocsin("publish", match[2], "-", stdin=match[1]) == "1 accepted, 0 refused"

    def curl(self, path: str) -> list[Any]:
        """The answers to the page's calls of one path."""
        bodies = [
            match[1] for command in commands(self._page) if (match := re.search(rf"8800{path} --json '(.*)'$", command))
        ]
        assert bodies
        return [self._data.client.post(path, content=body).json() for body in bodies]

    def shown(self, beginning: str) -> str:
        """The line that the page shows, which begins so."""
        lines = [line for block in blocks(self._page, "console") for line in block.splitlines()]
        return next(line for line in lines if line.startswith(beginning))


@pytest.fixture
def data(cluster: Cluster) -> DataProcess:
    process = cluster()
    process.start()
    return process


def test_the_example_of_the_readme(data: DataProcess, tmp_path: Path) -> None:
    reader = Reader(README, data, tmp_path)
    reader.save("app.sql", blocks(README, "sql")[0])
    assert "channel NearMe    created" in reader.tocsin("apply", "app.sql")
    reader.curl("/brokers")
    assert reader.curl("/subscriptions") == [json.loads(reader.shown('{"ids"'))]
    reader.echo()
    expected = json.loads(reader.shown('{"results"'))
    found = data.until(lambda: data.results("NearMe"), "results")
    assert [one["payload"] for one in found] == [one["payload"] for one in expected["results"]]


def test_the_tutorial(data: DataProcess, tmp_path: Path) -> None:
    reader = Reader(TUTORIAL, data, tmp_path)
    application, replacement = blocks(TUTORIAL, "sql")
    reader.save("air.sql", application)
    reader.save("stations.csv", blocks(TUTORIAL, "csv")[0])
    reader.save("readings.ndjson", blocks(TUTORIAL, "json")[0])
    assert reader.tocsin("apply", "air.sql") in blocks(TUTORIAL, "console")[3]
    reader.curl("/brokers")
    assert reader.curl("/subscriptions") == [{"ids": [1, 2]}]
    assert reader.tocsin("publish", "readings", "readings.ndjson") in blocks(TUTORIAL, "console")[5]

    data.until(lambda: len(data.results("BadAir")) == 2, "results")
    [answer] = reader.curl("/results")
    shown = "".join(blocks(TUTORIAL, "console")[6].splitlines()[1:])
    assert answer == json.loads(shown)

    reader.echo()
    data.until(lambda: len(data.results("BadAir")) == 3, "a further result")
    begin = application.index("CREATE CONTINUOUS CHANNEL")
    reader.save("air.sql", application[:begin] + replacement)
    assert "channel BadAir    replaced" in reader.tocsin("apply", "air.sql")
    reader.save("air.sql", application[:begin] + replacement.replace("s.city", "s.town"))
    refused = reader.tocsin("apply", "air.sql")
    pointed = "\n".join(blocks(TUTORIAL, "console")[8].splitlines()[1:])
    assert refused.endswith(pointed.rstrip())

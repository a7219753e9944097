"""The tutorial, followed to the letter: what it tells a reader to do gives what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from websockets.sync.client import connect

from tests.e2e.conftest import Cluster
from tests.e2e.process import WORK_SECONDS, DataProcess
from tests.pages import ROOT, TUTORIAL, blocks, commands, sessions

pytestmark = pytest.mark.process

_DRAWN: Final = re.compile(r'\b\d{12,}\b|(?<="incarnation":")[\w-]+|(?<="rates":\[)[\d.]+(?=\])|(?<="seconds":)[\d.]+')


class Drawn:
    """The numbers and names that every start of a data cluster draws anew, in the order in which they are first met."""

    def __init__(self) -> None:
        self.met: list[str] = []

    def replaced(self, text: str) -> str:
        """The text with each of them replaced by its place in that order."""
        return _DRAWN.sub(self._place, text)

    def _place(self, found: re.Match[str]) -> str:
        if found[0] not in self.met:
            self.met.append(found[0])
        return f"<{self.met.index(found[0])}>"


class Reader:
    """Someone who types what a page says, in a directory of their own."""

    def __init__(self, page: Path, data: DataProcess, directory: Path) -> None:
        self._page, self._data, self._directory = page, data, directory
        self._here, self._there = Drawn(), Drawn()

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

    def curls(self, path: str) -> None:
        """Calls a path as the page does, and is answered what it shows."""
        body, shown = self._call(path)
        self.compare(self._data.client.post(path, content=body).text, shown)

    def compare(self, said: str, shown: str) -> None:
        """What is said is what the page shows, on as many lines as it likes, but for what every start draws anew."""
        assert self._here.replaced(said) == self._there.replaced("".join(shown.splitlines()))

    def typed(self, text: str) -> str:
        """A text of the page as its reader types it: with their own numbers in place of those shown."""
        for shown, own in zip(self._there.met, self._here.met, strict=True):
            text = text.replace(shown, own)
        return text

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
    reader.curls("/brokers")
    reader.curls("/subscriptions")
    assert [reader.tocsin("publish", "readings", "readings.ndjson")] == reader.shown(
        "tocsin publish readings readings.ndjson"
    )
    data.until(lambda: len(data.results("BadAir")) == 2, "results")
    reader.curls("/results")

    with connect(f"ws://127.0.0.1:{data.port}/control?broker=me") as control:
        greeting = next(answer for typed, answer in sessions(TUTORIAL) if "/control" in typed)
        token, welcome = re.findall("^[<>] (.*)$", greeting, re.MULTILINE)
        executed, pulled = (text.removeprefix("< ") for text in blocks(TUTORIAL, "text") if text.startswith("< "))
        control.send(token)
        reader.compare(str(control.recv(timeout=WORK_SECONDS)), welcome)
        reader.echo()
        reader.compare(str(control.recv(timeout=WORK_SECONDS)), executed)
        control.send(reader.typed(blocks(TUTORIAL, "json")[1]))
        reader.compare(str(control.recv(timeout=WORK_SECONDS)), pulled)

    kept = application[: application.index("CREATE CONTINUOUS CHANNEL")]
    reader.save("air.sql", kept + replacement)
    assert "channel BadAir    replaced" in reader.tocsin("apply", "air.sql")
    reader.save("air.sql", kept + replacement.replace("s.city", "s.town"))
    assert reader.tocsin("apply", "air.sql") == refused

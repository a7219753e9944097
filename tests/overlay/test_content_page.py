"""The page for those who subscribe by content: its examples run, and its filters can be read."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path

import pytest

from tests.overlay.server.running import edge, head
from tests.pages import ROOT, blocks
from tests.waiting import SECONDS
from tocsin.content.language import parse

PAGE = ROOT / "docs" / "content.md"
HEAD, FIRST, SECOND = "ws://127.0.0.1:8710", "ws://127.0.0.1:8711", "ws://127.0.0.1:8712"


async def run(text: str, urls: dict[str, str]) -> None:
    """Runs an example, with brokers that are there."""
    for shown, real in urls.items():
        text = text.replace(shown, real)
    result = eval(compile(text, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {})
    assert inspect.isawaitable(result)
    await result


async def test_what_one_example_publishes_the_other_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subscribing, publishing = blocks(PAGE, "python")
    async with head(tmp_path) as root, edge(root, "a") as first, edge(root, "b") as second:
        urls = {HEAD: root, FIRST: first, SECOND: second}
        told = asyncio.create_task(run(subscribing, urls))
        async with asyncio.timeout(SECONDS):
            while not told.done():
                await run(publishing, urls)
        await told
    assert "'symbol': 'YHOO', 'high': 41.5" in capsys.readouterr().out


def test_filters_that_are_shown_can_be_read() -> None:
    shown = blocks(PAGE, "text")[-1]
    assert all(parse(line) for line in shown.splitlines())

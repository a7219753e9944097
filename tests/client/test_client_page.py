"""The page for application writers: its examples run, and it names what there is."""

from __future__ import annotations

import ast
import inspect
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.lively import Lively
from tests.pages import ROOT, blocks, words
from tests.web.browser import Browser
from tocsin.client.note import Note
from tocsin.client.notices import NoticeKind
from tocsin.client.rules import Rules

PAGE = ROOT / "docs" / "client.md"
EXAMPLES = blocks(PAGE, "python")
URL = "http://localhost:8700"


@pytest.fixture
async def town() -> AsyncIterator[Lively]:
    async with Lively("a") as town:
        yield town


@pytest.mark.parametrize("text", EXAMPLES[1:])
async def test_an_example_runs(town: Lively, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    await _run(text, town.url, token=await town.register("ann"))
    assert "print" not in text or capsys.readouterr().out


async def test_the_first_example_gives_a_token(town: Lively) -> None:
    names = await _run(EXAMPLES[0], town.url)
    assert names["token"]


@pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium: scripts/ensure-chromium installs it")
async def test_the_example_for_browsers_runs(town: Lively, tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "javascript")
    script = text.replace('import {connect} from "./tocsin.js";', "const {connect} = tocsin;").replace(URL, town.url)
    token = await town.register("ann")
    said = f'console.log = (...words) => report(words);\nconst token = "{token}";\n'
    async with Browser(f'{said}{script}\nawait report("end");', tmp_path / "profile") as browser:
        execution, rows = await browser.report()
        assert (execution, rows) == (1, [{"be": 1, "n": 1}])
        assert await browser.report() == "end"


def test_what_it_says_of_bounds_and_kinds_is_so() -> None:
    rules = Rules()
    assert (rules.backlog_notes, rules.backlog_bytes, rules.kept_bytes) == (1000, 4 << 20, 8 << 20)
    assert rules.batch_seconds == 1 / 20
    assert {str(kind) for kind in NoticeKind} <= set(words(PAGE))
    named = {word.removeprefix("note.").removesuffix("()") for word in words(PAGE) if word.startswith("note.")}
    made = Note(1, "c", 1, b"[]", False, lambda: None)
    assert all(hasattr(made, name) for name in named)


async def _run(text: str, url: str, **names: Any) -> dict[str, Any]:
    code = compile(text.replace(URL, url), str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)
    if inspect.isawaitable(result):
        await result
    return names

"""A sandbox of brokers' cores, and a browser on a page of the test's own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.web.browser import Browser
from tocsin.testing.sandbox import Sandbox

Open = Callable[..., Browser]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox("a", "b") as sandbox:
        yield sandbox


@pytest.fixture
def browse(tmp_path: Path) -> Open:
    """A browser on a page that runs a script, in which these names have these values."""

    def browse(script: str, **values: object) -> Browser:
        names = "\n".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
        return Browser(f"{names}\n{script}", tmp_path / "profile")

    return browse

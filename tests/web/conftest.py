"""A town of brokers' cores, and a browser on a page of the test's own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.client.town import Town
from tests.web.browser import Browser

Open = Callable[..., Browser]


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with Town("a", "b") as town:
        yield town


@pytest.fixture
def browse(tmp_path: Path) -> Open:
    """A browser on a page that runs a script, in which these names have these values."""

    def browse(script: str, **values: object) -> Browser:
        names = "\n".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
        return Browser(f"{names}\n{script}", tmp_path / "profile")

    return browse

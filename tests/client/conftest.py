"""A town to live in, and an end for tests that would wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.client.town import Town

_PATIENCE = 30.0


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    """Two brokers and a coordinator."""
    late = asyncio.get_running_loop().call_later(_PATIENCE, _give_up)
    async with Town("a", "b") as town:
        yield town
    late.cancel()


def _give_up() -> None:
    for task in asyncio.all_tasks():
        task.cancel("the test waited too long")

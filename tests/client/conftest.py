"""A sandbox to live in, and an end for tests that would wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tocsin.testing.sandbox import Sandbox

_PATIENCE = 30.0


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """Two brokers and a coordinator."""
    late = asyncio.get_running_loop().call_later(_PATIENCE, _give_up)
    async with Sandbox("a", "b") as sandbox:
        yield sandbox
    late.cancel()


def _give_up() -> None:
    for task in asyncio.all_tasks():
        task.cancel("the test waited too long")

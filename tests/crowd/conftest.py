"""A sandbox for the people to live in, without a data cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tocsin.testing.sandbox import Sandbox


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """Two brokers and a coordinator. Tests wait with deadlines of their own: processes take their time to start."""
    async with Sandbox("a", "b") as sandbox:
        yield sandbox

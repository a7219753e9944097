"""A town for the people to live in, without a data cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.client.town import Town


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    """Two brokers and a coordinator. Tests wait with deadlines of their own: processes take their time to start."""
    async with Town("a", "b") as town:
        yield town

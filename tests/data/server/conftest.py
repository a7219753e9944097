from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tocsin.data.server.app import create_app
from tocsin.settings import Settings


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
async def client(cluster: MemoryCluster, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application, with an admin's token."""
    app = create_app(cluster, MemoryTokens(), settings)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://tocsin", headers={"Authorization": "Bearer admin"}
    ) as client:
        yield client

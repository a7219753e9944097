"""The real server on a real socket, in the test's own event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.data.server.memory import MemoryCluster, MemoryTokens
from tocsin.data.server.serve import run
from tocsin.settings import Settings


@asynccontextmanager
async def running(
    cluster: MemoryCluster, settings: Settings, demo_token: str | None = None, tokens: MemoryTokens | None = None
) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    """Its URL and its task; at the end it is stopped by a signal, unless it has stopped already."""
    listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(
        run(cluster, tokens or MemoryTokens(), settings, demo_token=demo_token, listening=listens.set_result)
    )
    either: list[asyncio.Future[Any]] = [server, listens]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    yield listens.result(), server
    if not server.done():
        signal.raise_signal(signal.SIGTERM)
    await server

"""A server in the test's own event loop, stopped by the signal that stops a process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

Start = Callable[[Callable[[str], None]], Coroutine[Any, Any, None]]


@asynccontextmanager
async def running(start: Start) -> AsyncIterator[str]:
    """A server until the end of the block, as the URL that it says it listens on. Of several, the last ends first."""
    listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(start(listens.set_result))
    either: list[asyncio.Future[Any]] = [task, listens]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield listens.result()
    finally:
        if not task.done():
            signal.raise_signal(signal.SIGTERM)
        await task

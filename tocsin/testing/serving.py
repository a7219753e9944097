"""Small servers of the tests' own, which let their clients come and go as they like."""

from __future__ import annotations

import asyncio
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Handler = Callable[[StreamReader, StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[int]:
    """Serves connections until the end of the block, on the port given.

    A client that leaves in the middle is no error. Each connection is closed when it was handled, for not every Python
    closes one whose handler has failed.
    """
    handling: set[asyncio.Task[None]] = set()

    async def handled(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except (OSError, IncompleteReadError):
            pass
        finally:
            writer.close()

    def accept(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(handled(reader, writer))
        handling.add(task)
        task.add_done_callback(handling.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in handling:
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)
        await server.wait_closed()

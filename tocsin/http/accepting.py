"""Accepting connections that begin with a TLS handshake, within bounds: each has a time, and there are only so many.

An event loop's own server would have any number of handshakes under way, each with its buffers.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tocsin.log import get_logger

log = get_logger(__name__)

# The wait when the system has no room for one more connection.
_PAUSE: Final = 1.0


class Acceptor:
    """A listening socket whose connections become those of ``make`` once their handshake is done.

    What can go wrong: a handshake fails, is not finished in ``seconds``, or is the oldest of more than ``most`` (each
    ends its connection); there are no more files to be had (tried again).
    """

    def __init__(
        self, make: Callable[[], asyncio.Protocol], context: ssl.SSLContext, seconds: float, most: int
    ) -> None:
        self._make, self._context, self._seconds, self._most = make, context, seconds, most
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._accepting: asyncio.Task[None] | None = None

    def start(self, listener: socket.socket, backlog: int) -> None:
        """Accepts from now on."""
        listener.setblocking(False)
        listener.listen(backlog)
        self._accepting = asyncio.create_task(self._accept(listener))

    def close(self) -> None:
        """Accepts no more, and gives up handshakes."""
        for task in (*self._handshakes, *([self._accepting] if self._accepting else [])):
            task.cancel()

    async def wait_closed(self) -> None:
        """Until nothing is under way."""
        tasks = (*self._handshakes, *([self._accepting] if self._accepting else []))
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("a connection cannot be accepted", reason=error.strerror)
                await asyncio.sleep(_PAUSE)
                continue
            if len(self._handshakes) >= self._most:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            task = asyncio.create_task(self._shake_hands(connection))
            self._handshakes[task] = None
            task.add_done_callback(lambda ended: self._handshakes.pop(ended, None))

    async def _shake_hands(self, connection: socket.socket) -> None:
        with suppress(OSError, TimeoutError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, connection, ssl=self._context, ssl_handshake_timeout=self._seconds
            )

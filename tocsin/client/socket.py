"""One WebSocket to a broker: opened, read and written for a core that knows it by a number."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException
from websockets.frames import CloseCode

from tocsin.client.core.actions import Troubled
from tocsin.client.core.connector import ABNORMAL
from tocsin.client.core.events import Event, Lost, Opened, Received
from tocsin.client.rules import Rules
from tocsin.client.websocket import MESSAGE_BYTES, ClientWebSocket

_CLOSE_SECONDS: Final = 2.0
# It would tell every message at the level debug, with the token in it.
_quiet = logging.getLogger("tocsin.client.websockets")
_quiet.setLevel(logging.ERROR)


class BrokerSocket:
    """A connection in a task of its own, which tells what happens on it until it is lost or closed.

    What can go wrong: it does not open (``complain`` hears why), the other side closes it, or falls silent and does
    not answer pings: each is told as Lost.
    """

    def __init__(
        self,
        number: int,
        url: str,
        rules: Rules,
        tell: Callable[[Event], None],
        complain: Callable[[Troubled], None],
        trust: Callable[[], ssl.SSLContext],
    ) -> None:
        self._number, self._url, self._rules, self._tell, self._complain = number, url, rules, tell, complain
        self._trust, self._closed = trust, False
        self._websocket: ClientWebSocket | None = None
        self.task = asyncio.create_task(self._run(), name=f"tocsin connection {number}")

    def send(self, text: bytes) -> None:
        """Writes a message without waiting: the core itself bounds what is unanswered."""
        if self._websocket:
            self._websocket.push(text)

    def close(self) -> None:
        """Closes in an orderly way, after what was sent; nothing is told any more."""
        self._closed = True
        self.task.cancel()

    async def _run(self) -> None:
        code = ABNORMAL
        try:
            async with self._opening() as websocket:
                assert isinstance(websocket, ClientWebSocket)
                self._websocket = websocket
                self._tell(Opened(self._number))
                await self._listen(websocket)
            code = websocket.close_code or ABNORMAL
        except (OSError, ValueError, WebSocketException) as error:
            # A ValueError: the URL is none. The coordinator may name another broker, or this one by another.
            self._complain(Troubled("broker", f"the broker at {self._url} cannot be reached: {error}"))
        self._tell(Lost(self._number, code))

    def _opening(self) -> connect:
        return connect(
            self._url,
            ssl=self._trust() if self._url.startswith("wss:") else None,
            compression=None,
            open_timeout=None,  # the core gives up when it has waited long enough
            ping_interval=None,  # see watch
            close_timeout=_CLOSE_SECONDS,
            max_size=MESSAGE_BYTES,
            user_agent_header=None,
            logger=_quiet,
            create_connection=ClientWebSocket,
        )

    async def _listen(self, websocket: ClientWebSocket) -> None:
        websocket.deliver(self._received)
        websocket.watch(self._rules.ping_seconds, self._rules.pong_seconds)
        try:
            await websocket.wait_closed()
        except asyncio.CancelledError:
            # To leave is no fault, which is what the broker would be told if the block around this did it.
            await websocket.close(CloseCode.NORMAL_CLOSURE)
            raise

    def _received(self, message: bytes) -> None:
        if not self._closed:
            self._tell(Received(self._number, message))
